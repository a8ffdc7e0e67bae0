"""The endpoint: who may ask, how much, and how an answer goes out. Knows HTTP, no model.

Binds the loopback address only. Every request needs the token, a Host that names this machine
(against names that are made to point here), and no Origin (a page in a browser always sends one).
Threads are here: one accepts, one serves each connection.
"""

import hmac
import json
import logging
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from app.chat.events import Event, Failed, Finished, Piece
from app.server import protocol
from app.server.client import Asked, EngineClient
from app.server.protocol import BadRequest

log = logging.getLogger(__name__)

ADDRESS = "127.0.0.1"
MOST_BODY_BYTES = 16 * 1024 * 1024
MOST_CONNECTIONS = 16
SILENCE_S = 30.0  # a client that sends nothing for so long is let go
LOOK_S = 0.25  # how often a waiting answer looks whether its client is still there
STATUS_OF = {"context": 400, "options": 400, "no model": 503, "memory": 503}


class LocalServer:
    """Raises OSError when the port is taken. `port` 0 takes a free one.

    `on_use` is called on a thread of the server: with how many answers are asked for right now, and
    how many were asked for since the start.
    """

    def __init__(
        self,
        client: EngineClient,
        token: str,
        *,
        port: int = 0,
        on_use: Callable[[int, int], None] = lambda _now, _total: None,
    ) -> None:
        if not token:
            raise ValueError("the server needs a token")
        self._server = _Server((ADDRESS, port), _Handler)
        self._server.client, self._server.token = client, token
        self._server.on_use = on_use
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="server", daemon=True
        )

    @property
    def address(self) -> str:
        return f"http://{ADDRESS}:{self.port}/v1"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """No new request is taken; answers that are being written are stopped."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.end_all()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 16
    client: EngineClient
    token: str
    on_use: Callable[[int, int], None]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._asked: set[Asked] = set()
        self._total = 0
        self._lock = threading.Lock()
        self.is_closing = False

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)  # full: a client tries again
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.exception("a request to the local server failed")

    def ask(self, completion: protocol.Completion) -> Asked:
        with self._lock:
            if self.is_closing:
                raise BadRequest("The server is being closed.", status=503)
            asked = self.client.ask(completion.messages, completion.options)
            self._asked.add(asked)
            self._total += 1
            self.on_use(len(self._asked), self._total)
            return asked

    def forget(self, asked: Asked) -> None:
        with self._lock:
            self._asked.discard(asked)
            self.on_use(len(self._asked), self._total)

    def end_all(self) -> None:
        with self._lock:
            self.is_closing = True
            for asked in self._asked:
                asked.stop.set()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "Inglenook", ""
    timeout = SILENCE_S

    def do_GET(self) -> None:
        self._serve(self._get)

    def do_POST(self) -> None:
        self._serve(self._post)

    def _serve(self, act: Any) -> None:
        """Whatever goes wrong is one sentence to the client, and the connection ends."""
        try:
            self._check_caller()
            act()
        except BadRequest as error:
            self.close_connection = True
            kind = "invalid_request_error" if error.status < 500 else "server_error"
            words = protocol.failure(str(error), kind=kind, parameter=error.parameter)
            self._send(error.status, words)
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def _check_caller(self) -> None:
        name = (self.headers.get("Host") or "").rsplit(":", 1)[0]
        if name not in (ADDRESS, "localhost"):
            raise BadRequest("This address is not for that host.", status=421)
        if self.headers.get("Origin") is not None:
            raise BadRequest("Pages in a browser may not use this server.", status=403)
        given = (self.headers.get("Authorization") or "").removeprefix("Bearer ").strip()
        if not hmac.compare_digest(given.encode(), self.server.token.encode()):
            raise BadRequest("The token is missing or wrong. It is in the settings.", status=401)

    # ---- routes
    def _get(self) -> None:
        if self._path() != "/v1/models":
            raise BadRequest("There is nothing at this address.", status=404)
        self._send(200, protocol.models(self.server.client.model()))

    def _post(self) -> None:
        if self._path() != "/v1/chat/completions":
            raise BadRequest("There is nothing at this address.", status=404)
        completion = protocol.read_completion(self._body())
        model = self.server.client.model()
        if model is None:
            raise BadRequest(
                "No model is loaded. Choose one in Inglenook's window first.", status=503
            )
        asked = self.server.ask(completion)
        answer = protocol.Answer(model.name, asked.number)
        try:
            events = asked.follow(self._is_there, look_s=LOOK_S)
            if completion.is_streamed:
                self._stream(answer, events, wants_usage=completion.wants_usage)
            else:
                self._send_whole(answer, events)
        finally:
            asked.stop.set()
            self.server.forget(asked)

    def _path(self) -> str:
        return self.path.split("?", 1)[0].rstrip("/")

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length") or ""
        if self.headers.get("Transfer-Encoding") or not length.isdecimal():
            raise BadRequest("The request must say its Content-Length.", status=411)
        if int(length) > MOST_BODY_BYTES:
            raise BadRequest(f"The request is longer than {MOST_BODY_BYTES:,} bytes.", status=413)
        return self.rfile.read(int(length))

    # ---- answers
    def _send_whole(self, answer: protocol.Answer, events: Iterator[Event]) -> None:
        texts: dict[bool, list[str]] = {False: [], True: []}
        for event in events:
            if isinstance(event, Piece):
                texts[event.is_thought].append(event.text)
            elif isinstance(event, Failed):
                raise BadRequest(event.message, status=STATUS_OF.get(event.kind, 500))
            elif isinstance(event, Finished):
                text, thought = "".join(texts[False]), "".join(texts[True])
                self._send(200, answer.whole(text, thought, event.reason, event.stats))

    def _stream(
        self, answer: protocol.Answer, events: Iterator[Event], *, wants_usage: bool
    ) -> None:
        """Server-sent events; the status is only sent with the first of them, so that a request
        that fails at once is an error and not an empty stream."""
        has_begun = False
        for event in events:
            if isinstance(event, Failed) and not has_begun:
                raise BadRequest(event.message, status=STATUS_OF.get(event.kind, 500))
            if not has_begun and isinstance(event, Piece | Finished):
                self._begin_stream()
                self._say(answer.first())
                has_begun = True
            if isinstance(event, Piece) and event.text:
                self._say(answer.piece(event.text, is_thought=event.is_thought))
            elif isinstance(event, Failed):
                self._say(protocol.failure(event.message, kind="server_error"))
            elif isinstance(event, Finished):
                self._say(answer.last(event.reason))
                if wants_usage:
                    self._say(answer.usage(event.stats))
        self._write(b"data: [DONE]\n\n")

    def _begin_stream(self) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()

    def _say(self, words: dict[str, Any]) -> None:
        self._write(b"data: " + json.dumps(words).encode() + b"\n\n")

    def _write(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def _send(self, status: int, words: dict[str, Any]) -> None:
        body = json.dumps(words).encode()
        self.send_response(HTTPStatus(status))
        self.send_header("Content-Type", "application/json")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self._write(body)

    def _is_there(self) -> bool:
        """Whether the client still holds the connection: one that left has an end to be read."""
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self.connection, selectors.EVENT_READ)
                return not selector.select(0) or bool(self.connection.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    def log_message(self, format: str, *values: Any) -> None:
        """To the log, without what was asked."""
        log.info("%s %s", self.command, self.path.split("?", 1)[0][:80])

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server itself refuses (a line too long, an unknown method), in our form."""
        self.close_connection = True
        self.command = getattr(self, "command", None) or "-"
        self._send(code, protocol.failure(message or "The request cannot be read."))
