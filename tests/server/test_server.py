"""The endpoint as other programs meet it: OpenAI's own client, and bare HTTP for refusals."""

import http.client
import json
import socket
import threading
from typing import Any

import httpx
import openai
import pytest

from app.chat.events import Failed, Load, Piece, Reply
from app.chat.messages import Message, Options
from app.chat.session import ChatSession
from app.engine.stop import Stop
from app.server.server import MOST_CONNECTIONS, LocalServer

TOKEN = "a-token-of-a-test"
HELLO = "Hello, world 🌍"
QUESTION: Any = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def client(server: LocalServer) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=server.address,
        api_key=TOKEN,
        max_retries=0,
        http_client=httpx.Client(trust_env=False, timeout=20),
    )


def post(server: LocalServer, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Authorization": f"Bearer {TOKEN}", **headers}
    connection.request("POST", "/v1/chat/completions", sent, given)
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found


def test_models_are_listed(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["tiny"]


def test_an_answer_comes_whole(client: openai.OpenAI, session: Any) -> None:
    answer = client.chat.completions.create(
        model="tiny",
        messages=[{"role": "system", "content": "Be brief."}, *QUESTION],
        temperature=0.3,
        max_tokens=7,
        stop=["\n"],
        seed=5,
    )
    assert answer.choices[0].message.content == HELLO
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (3, 4)
    options = session.requests[0].options
    assert (options.system_prompt, options.temperature, options.longest_answer) == (
        "Be brief.",
        0.3,
        7,
    )
    assert (options.stop_strings, options.seed) == (("\n",), 5)
    assert [message.text for message in session.requests[0].messages] == ["Hi"]


def test_an_answer_comes_in_pieces(client: openai.OpenAI, session: Any) -> None:
    session.pieces = [("Hm. ", True), *session.pieces]
    chunks = list(
        client.chat.completions.create(
            model="tiny",
            messages=QUESTION,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == HELLO
    assert len(texts) >= 5
    thought = [getattr(chunk.choices[0].delta, "reasoning_content", None) for chunk in chunks[:-1]]
    assert "Hm. " in thought
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 8
    assert chunks[-2].choices[0].finish_reason == "stop"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_who_leaves_stops_the_answer(server: LocalServer, session: Any, is_streamed: bool) -> None:
    session.gate = threading.Semaphore(2 if is_streamed else 0)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    body = json.dumps({"messages": QUESTION, "stream": is_streamed})
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {TOKEN}"})
    if is_streamed:
        assert connection.getresponse().readline().startswith(b"data: ")
    assert connection.sock is not None or is_streamed
    connection.close()
    assert session.was_stopped.wait(20)


def test_closing_ends_what_is_written(server: LocalServer, session: Any) -> None:
    session.gate = threading.Semaphore(0)
    got: list[Any] = []
    asking = threading.Thread(
        target=lambda: got.append(post(server, {"messages": QUESTION})), daemon=True
    )
    asking.start()
    assert session.has_begun.wait(20)
    server.close()
    assert session.was_stopped.wait(20)
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", server.port), timeout=5)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Origin": "https://example.com"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example:80"}, 421),
        ({"Host": ""}, 421),
        ({"Transfer-Encoding": "chunked"}, 411),
    ],
)
def test_callers_that_may_not(
    server: LocalServer, session: Any, headers: dict[str, str], status: int
) -> None:
    found_status, found = post(server, {"messages": QUESTION}, **headers)
    assert found_status == status
    assert found["error"]["message"].endswith(".")
    assert not session.requests


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        (b"{", None),
        (b"[]", None),
        (b"[" * 100_000, None),
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": [7]}, "messages"),
        ({"messages": [{"role": "king", "content": "hi"}]}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
        ({"messages": [{"role": "assistant", "content": "I"}]}, "messages"),
        ({"messages": QUESTION, "temperature": 3}, "temperature"),
        ({"messages": QUESTION, "temperature": True}, "temperature"),
        ({"messages": QUESTION, "temperature": float("nan")}, "temperature"),
        ({"messages": QUESTION, "top_p": "1"}, "top_p"),
        ({"messages": QUESTION, "max_tokens": 0}, "max_tokens"),
        ({"messages": QUESTION, "seed": 1.5}, "seed"),
        ({"messages": QUESTION, "stop": [""]}, "stop"),
        ({"messages": QUESTION, "stop": ["a"] * 99}, "stop"),
        ({"messages": QUESTION, "stream": "yes"}, "stream"),
        ({"messages": QUESTION, "n": 2}, "n"),
        ({"messages": QUESTION, "tools": [{}]}, "tools"),
        ({"messages": QUESTION, "response_format": {"type": "xml"}}, "response_format"),
        ({"messages": QUESTION, "response_format": "json"}, "response_format"),
    ],
)
def test_bad_requests_get_a_sentence(
    server: LocalServer, session: Any, body: Any, parameter: str | None
) -> None:
    status, found = post(server, body)
    assert status == 400
    assert found["error"]["message"].endswith(".")
    assert found["error"]["param"] == parameter
    assert not session.requests
    assert post(server, {"messages": QUESTION})[0] == 200


def test_too_long_a_request_is_not_read(server: LocalServer) -> None:
    assert post(server, b"", **{"Content-Length": str(10**12)})[0] == 413


def test_without_a_model_it_says_so(server: LocalServer, loaded: list[Any]) -> None:
    loaded[0] = None
    status, found = post(server, {"messages": QUESTION})
    assert (status, "No model is loaded" in found["error"]["message"]) == (503, True)


@pytest.mark.parametrize(("kind", "status"), [("context", 400), ("model", 500)])
@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_failure_is_an_error_and_no_empty_answer(
    server: LocalServer, session: Any, kind: str, status: int, is_streamed: bool
) -> None:
    session.failure = Failed(0, "It did not work.", kind)
    found_status, found = post(server, {"messages": QUESTION, "stream": is_streamed})
    assert (found_status, found["error"]["message"]) == (status, "It did not work.")


def test_only_the_loopback_address_listens(server: LocalServer) -> None:
    assert server._server.socket.getsockname()[0] == "127.0.0.1"


def test_a_flood_of_connections_leaves_it_usable(server: LocalServer) -> None:
    held = [
        socket.create_connection(("127.0.0.1", server.port), timeout=20)
        for _ in range(2 * MOST_CONNECTIONS)
    ]
    for each in held:
        each.close()
    status = 0
    for _ in range(200):  # until the places are free again
        try:
            status, _ = post(server, {"messages": QUESTION})
            break
        except (OSError, http.client.HTTPException):
            continue
    assert status == 200


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/files", "/../etc/passwd", "/v1/chat/completions"]
)
def test_other_addresses_hold_nothing(server: LocalServer, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
    assert connection.getresponse().status == 404
    connection.close()


def test_other_methods_are_refused_in_words(server: LocalServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("DELETE", "/v1/models", headers={"Authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    assert answer.status == 501
    assert "error" in json.loads(answer.read())
    connection.close()


def test_a_real_model_answers_as_in_the_window(
    serve: Any, data_folder: Any, loaded: list[Any]
) -> None:
    loop_events: list[Any] = []
    session = ChatSession()
    server = serve(session)
    asked = server._server.client._loop.submit(
        Load(1, str(data_folder / "tiny-llama")), loop_events.append
    )
    assert not asked.is_set()
    body = {"messages": QUESTION, "max_tokens": 8, "temperature": 0, "seed": 1}
    status, found = post(server, body)
    assert status == 200
    text = found["choices"][0]["message"]["content"]
    assert found["usage"]["completion_tokens"] <= 8
    options = Options(temperature=0.0, longest_answer=8, seed=1)
    expected = ChatSession()
    list(expected.load(Load(1, str(data_folder / "tiny-llama")), Stop()))
    events = expected.reply(Reply(2, (Message.of("user", "Hi"),), options), Stop())
    assert text == "".join(event.text for event in events if isinstance(event, Piece))
    expected.close()


def test_half_a_character_in_a_message_is_no_end(serve: Any, data_folder: Any) -> None:
    server = serve(ChatSession())
    server._server.client._loop.submit(Load(1, str(data_folder / "tiny-llama")), print)
    content = [{"role": "user", "content": "\ud800 half \x00"}]
    status, _ = post(server, {"messages": content, "max_tokens": 2})
    assert status in (200, 400)
    assert post(server, {"messages": QUESTION, "max_tokens": 2})[0] == 200
