"""The real application in a real window: what is typed, what is stored, what a crash leaves.

The oracles stand outside the application: SQLite for the database, the engine alone for the
tokens, the screen reader's interface for what the window shows.
"""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STARTER = "SmolLM2-135M-Instruct"
LONG = "Write a very long story about a lighthouse keeper and her seven cats."
CODE = "Write a Python function word_count(text) that counts the words of a text."

pytestmark = [pytest.mark.end_to_end, pytest.mark.starter]


# ---- words of these tests
def choose(window: Any, option: str, value: object) -> None:
    """Sets one option of the chat, in the inspector."""
    if window.find(id=option) is None:
        window.key("ctrl+i")
    window.click(id=option)
    window.key("ctrl+a")
    window.type(str(value))
    window.key("Tab")
    window.click(id="message")


def hide_options(window: Any) -> None:
    window.key("ctrl+i")
    window.wait_until(lambda: window.find(id="inspector") is None, "the inspector closed")


def ready(open_window: Callable[..., Any], data: Path) -> Any:
    """A window whose model is loaded, set to always take the likeliest token."""
    window = open_window(data).appear()
    window.wait_until(lambda: window.reads(f"{STARTER} is ready"), "the model's name")
    choose(window, "temperature", 0)
    return window


def send(window: Any, text: str) -> None:
    window.type(text)
    window.key("Return")


def answers(window: Any, state: str) -> list[dict[str, Any]]:
    found = [row for row in window.messages() if row["role"] == "assistant"]
    return [row for row in found if row["state"] == state]


def wait_for_answers(window: Any, count: int, state: str = "done") -> list[dict[str, Any]]:
    return window.wait_until(
        lambda: len(found := answers(window, state)) == count and found, f"{count} {state}"
    )


def wait_for_tokens(window: Any, least: int) -> dict[str, Any]:
    """The answer that is being written, once so many of its tokens are in the database."""

    def written() -> dict[str, Any] | None:
        found = answers(window, "writing")
        return found[0] if found and len(found[0]["token_ids"]) >= least else None

    return window.wait_until(written, f"{least} tokens in the database")


def engine_alone(folder: Path, messages: list[dict[str, str]], stats: dict[str, Any]) -> list[int]:
    """The tokens that the engine writes for these messages, without chat, store or window."""
    from app import engine as og

    model = og.Model(str(folder))
    tokenizer = og.Tokenizer(model)
    params = og.GeneratorParams(model)
    params.set_search_options(**stats["options"])
    with og.Generator(model, params) as generator:
        prompt = tokenizer.encode(tokenizer.apply_chat_template(json.dumps(messages)))
        assert len(prompt) == stats["prompt_tokens"]
        generator.append_tokens(prompt)
        while not generator.is_done():
            generator.generate_next_token()
        tokens = generator.get_sequence(0).tolist()[len(prompt) :]
    model.close()
    return [token for token in tokens if token not in tokenizer.eos_token_ids]


def sockets_to_anywhere(pid: int) -> list[str]:
    """Internet sockets that the process holds, of any kind."""
    held = {link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    found = []
    for kind in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
        lines = Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]
        found += [line for line in lines if f"socket:[{line.split()[9]}]" in held]
    return found


# ---- the tests
def test_chat_is_stored_as_it_was_typed_and_generated(
    open_window: Callable[..., Any], data: Path, save_picture: Callable[..., None]
) -> None:
    window = ready(open_window, data)
    send(window, CODE)
    first = wait_for_answers(window, 1)[0]
    question = window.messages()[0]
    assert question["text"] == CODE
    assert first["parent_id"] == question["id"]

    said = [{"role": "user", "content": question["text"]}]
    stats = first["details"]["stats"]
    assert stats["options"]["do_sample"] is False
    assert first["token_ids"] == engine_alone(data / "models" / STARTER, said, stats)
    words = max(re.findall("[A-Za-z ,]+", first["text"]), key=len).strip()
    window.wait_until(lambda: window.reads(words), "the answer shown")

    # A follow-up reads only what is new: all of the first turn is in the cache but its end token.
    send(window, "And one more?")
    second = wait_for_answers(window, 2)[1]
    kept = second["details"]["stats"]["kept_tokens"]
    assert kept >= stats["prompt_tokens"] + stats["new_tokens"] - 1
    said += [{"role": "assistant", "content": first["text"]}]
    said += [{"role": "user", "content": "And one more?"}]
    assert window.messages()[2]["text"] == "And one more?"
    assert second["details"]["stats"]["prompt_tokens"] > kept

    assert not sockets_to_anywhere(window.process.pid)
    assert not list(window.desktop.folder.rglob("*onnxruntime*"))  # usage figures of the runtime
    hide_options(window)
    save_picture(window, "answer")
    assert window.quit() == 0
    assert "Traceback" not in window.log.read_text()


def test_any_script_arrives_in_the_database(open_window: Callable[..., Any], data: Path) -> None:
    window = ready(open_window, data)
    text = "Größe, 你好, नमस्ते, مرحبا, 🙂\nand <|im_end|> is a word here"
    window.paste(text)
    window.key("Return")
    answer = wait_for_answers(window, 1)[0]
    assert window.messages()[0]["text"] == text
    assert answer["token_ids"]


def test_stop_keeps_what_was_written(
    open_window: Callable[..., Any], data: Path, save_picture: Callable[..., None]
) -> None:
    window = ready(open_window, data)
    send(window, LONG)
    hide_options(window)
    seen = wait_for_tokens(window, 12)
    save_picture(window, "streaming", is_still=False)
    window.key("Escape")
    stopped = wait_for_answers(window, 1, "stopped")[0]
    assert stopped["text"].startswith(seen["text"])
    assert stopped["token_ids"][: len(seen["token_ids"])] == seen["token_ids"]
    assert window.find(name="Stop") is None

    choose(window, "longest_answer", 5)  # and the chat goes on
    send(window, "Go on, please.")
    assert len(wait_for_answers(window, 1, "length")[0]["token_ids"]) == 5


def test_nothing_is_lost_by_a_kill(open_window: Callable[..., Any], data: Path) -> None:
    window = ready(open_window, data)
    send(window, LONG)
    wait_for_tokens(window, 8)
    window.type("a thought that I had begun")

    def both_saved() -> Any:
        drafts = window.rows("SELECT draft FROM conversation")
        saved = drafts and drafts[0]["draft"] == "a thought that I had begun"
        return saved and answers(window, "writing")

    seen = window.wait_until(both_saved, "the draft in the database")[0]
    window.kill()

    window = open_window(data).appear()
    interrupted = wait_for_answers(window, 1, "interrupted")[0]
    assert interrupted["id"] == seen["id"]
    assert interrupted["text"].startswith(seen["text"])
    assert interrupted["token_ids"][: len(seen["token_ids"])] == seen["token_ids"]
    assert window.messages()[0]["text"] == LONG

    window.wait_until(lambda: window.reads("Interrupted"), "the mark on the answer")
    assert window.the(id="message").text == "a thought that I had begun"
    assert window.reads(LONG)


def test_dark(
    open_window: Callable[..., Any], data: Path, save_picture: Callable[..., None]
) -> None:
    (data / "settings.json").write_text(json.dumps({"theme": "dark"}))
    window = ready(open_window, data)
    send(window, "Write a short list of three fruits.")
    wait_for_answers(window, 1)
    assert brightness(window) < 80
    save_picture(window, "dark")


def brightness(window: Any) -> float:
    """0 to 255, of the whole window."""
    tones = window.picture().convert("L").histogram()
    return sum(tone * count for tone, count in enumerate(tones)) / sum(tones)


def test_first_run_without_a_model(
    open_window: Callable[..., Any], tmp_path: Path, save_picture: Callable[..., None]
) -> None:
    window = open_window(tmp_path / "empty").appear()
    window.wait_until(lambda: window.find(id="open-first-model"), "a way to a model")
    assert brightness(window) > 200
    save_picture(window, "first-run")


def test_a_model_file_on_the_command_line_is_taken_in(
    open_window: Callable[..., Any], tmp_path: Path, starter_gguf: Path
) -> None:
    data = tmp_path / "empty"
    window = open_window(data, starter_gguf).appear()
    window.wait_until(lambda: window.reads(f"{STARTER} is ready"), "the model")
    assert (data / "models" / STARTER / "genai_config.json").is_file()
    send(window, "Hello")
    wait_for_answers(window, 1)


def test_a_cut_model_file_is_refused_in_words(
    open_window: Callable[..., Any],
    data: Path,
    starter_gguf: Path,
    tmp_path: Path,
    save_picture: Callable[..., None],
) -> None:
    cut = tmp_path / "Half-a-model-Q4_1.gguf"
    with starter_gguf.open("rb") as whole:
        cut.write_bytes(whole.read(5_000_000))
    window = open_window(data, cut).appear()
    window.wait_until(lambda: window.reads("can't be used"), "the notice")
    assert not window.reads("Traceback")
    save_picture(window, "error")
    assert [folder.name for folder in (data / "models").iterdir()] == [STARTER]


def test_a_model_that_was_deleted_while_loaded(
    open_window: Callable[..., Any], data: Path
) -> None:
    window = ready(open_window, data)
    send(window, "Hello")
    wait_for_answers(window, 1)
    shutil.rmtree(data / "models" / STARTER)
    send(window, "Are you still there?")
    window.wait_until(lambda: window.reads("was moved or deleted"), "the notice")
    assert not window.reads("Traceback")
    kept = [row["text"] for row in window.messages() if row["role"] == "user"]
    draft = window.the(id="message").text
    assert "Are you still there?" in [*kept, draft]


def test_a_prompt_longer_than_the_context_comes_back(
    open_window: Callable[..., Any], data: Path
) -> None:
    window = ready(open_window, data)
    text = "\U00012000" * 4000  # a sign that no tokenizer knows: each is several tokens
    window.paste(text)
    window.key("Return")
    window.wait_until(lambda: window.reads("longer than the model can read"), "the notice")
    kept = [row["text"] for row in window.messages() if row["role"] == "user"]
    assert text in [*kept, window.the(id="message").text]


def test_a_second_start_brings_the_first_window(
    open_window: Callable[..., Any], data: Path
) -> None:
    window = ready(open_window, data)
    second = open_window(data)
    assert second.process.wait(60) == 0
    assert window.process.poll() is None
    send(window, "Still here?")
    wait_for_answers(window, 1)
