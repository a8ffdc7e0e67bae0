"""The same chat in a terminal: the same models, the same saved chats, no window.

Exit codes: 0 done; 1 it did not work, and one sentence on stderr says why; 2 wrong usage;
130 ended by Ctrl-C (an import, or the answer to piped text). In a chat Ctrl-C ends the answer that
is being written, not the program. Answers go to stdout, everything else to stderr.

With a terminal as input it is a conversation; otherwise all of stdin is one message.
"""

import argparse
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args

from app import logs, settings
from app.chat import conversations
from app.chat.events import (
    Event,
    Failed,
    Finished,
    Forgot,
    Load,
    Loaded,
    Notice,
    Piece,
    Prefill,
    Reply,
    Trying,
)
from app.chat.loop import EngineLoop
from app.chat.messages import Message, ModelInfo, Options, Stats
from app.chat.session import ChatSession
from app.convert import Precision, folder_name
from app.library.errors import LibraryError
from app.library.models import STARTER_NAME, ModelFolder, import_model, inspect, list_models
from app.paths import Folders
from app.store.records import PartRecord, State
from app.store.store import Store, StoreError
from app.terminal import (
    be_robust,
    dim,
    on_interrupt,
    printer,
    read_line,
    say,
    status_line,
    with_editing,
)

log = logging.getLogger(__name__)

OK, FAILED, INTERRUPTED = 0, 1, 130
SAVE_INTERVAL_S = 0.25
WAKE_S = 0.1  # where a wait cannot be interrupted (Windows), Ctrl-C is seen this often

NO_MODEL = "There is no model yet. Bring one in with: inglenook-cli import FILE.gguf"
HELP = "Enter sends. Ctrl-C ends an answer, Ctrl-D or /exit ends the chat."


class CommandError(Exception):
    """What was asked for cannot be done; a sentence for a person."""


def main(arguments: Sequence[str] | None = None) -> int:
    be_robust()
    options = _parser().parse_args(arguments, argparse.Namespace(**_DEFAULTS))
    folders = Folders(options.data.absolute()) if options.data else Folders.default()
    log_file = logs.start(folders.logs)
    try:
        code = int(options.run(options, folders))
        sys.stdout.flush()  # here, where a reader that left is no traceback
        return code
    except (CommandError, LibraryError, StoreError) as error:
        log.warning("%s", error, exc_info=error)
        say(str(error))
        return FAILED
    except KeyboardInterrupt:
        say()
        return INTERRUPTED
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # else nobody is left to be told
            log.exception("the command line failed")
            say(f"Something could not be read or written: {error.strerror or error}.")
        return FAILED
    except Exception:
        log.exception("the command line failed")
        where = f" The details are in {log_file}." if log_file else ""
        say(f"Something went wrong inside Inglenook.{where}")
        return FAILED
    finally:
        logs.stop()


# ---- what can be asked for


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--data", type=Path, metavar="DIR", help="where models and chats are kept")
    chat = argparse.ArgumentParser(
        add_help=False, parents=[common], argument_default=argparse.SUPPRESS
    )
    chat.add_argument("--model", metavar="FOLDER", help="a model folder, or the name of a model")
    chat.add_argument(
        "--continue", dest="goes_on", action="store_true", help="go on with the last chat"
    )
    chat.add_argument("--system", metavar="TEXT", help="what the model is told beforehand")
    chat.add_argument("--temperature", type=float, metavar="N")
    chat.add_argument("--top-p", type=float, metavar="N")
    chat.add_argument("--top-k", type=int, metavar="N")
    chat.add_argument("--repetition-penalty", type=float, metavar="N")
    chat.add_argument("--min-p", type=float, metavar="N")
    chat.add_argument("--no-repeat-ngram-size", type=int, metavar="N", help="no N tokens twice")
    chat.add_argument("--longest-answer", type=int, metavar="TOKENS")
    chat.add_argument("--shortest-answer", type=int, metavar="TOKENS")
    chat.add_argument("--beams", type=int, metavar="N", help="try N answers, take the likeliest")
    chat.add_argument("--length-penalty", type=float, metavar="N", help="among beams")
    chat.add_argument("--seed", type=int, metavar="N", help="the same seed, the same answer")
    chat.add_argument("--stop", action="append", metavar="TEXT", help="ends an answer; repeatable")
    chat.add_argument(
        "--ban", action="append", metavar="TEXT", help="never stands in an answer; repeatable"
    )
    form = chat.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="answer in JSON")
    form.add_argument("--json-schema", type=Path, metavar="FILE", help="answer in this form")
    form.add_argument("--regex", metavar="EXPRESSION", help="answer in this form")
    chat.add_argument(
        "--forget",
        dest="overflow",
        action="store_const",
        const="forget",
        help="leave out the oldest turns when a chat gets too long",
    )
    chat.add_argument("--guess", dest="guesses_ahead", action="store_true", help="guess ahead")
    chat.add_argument(
        "--think",
        dest="thinks",
        action=argparse.BooleanOptionalAction,
        help="for models that can do both",
    )

    parser = argparse.ArgumentParser(
        prog="inglenook-cli",
        parents=[chat],
        description="Chat with a language model on this computer.",
        epilog=f"{HELP} Exit codes: 0 done, 1 failed, 2 wrong usage, 130 ended by Ctrl-C.",
    )
    parser.set_defaults(run=_chat)
    commands = parser.add_subparsers(metavar="COMMAND")
    commands.add_parser("chat", parents=[chat], help="chat (what happens without a command)")
    models = commands.add_parser("models", parents=[common], help="list the models")
    models.set_defaults(run=_models)
    imports = commands.add_parser("import", parents=[common], help="bring in a model file")
    imports.add_argument("file", type=Path, metavar="FILE", help="a GGUF file or a model folder")
    imports.add_argument(
        "--precision",
        choices=get_args(Precision),
        default="stored",
        help="stored: the file's own weights (default); int8: 8 bits; int4: smallest; fp32: exact",
    )
    imports.add_argument("--name", default="", help="what to call it")
    imports.set_defaults(run=_import)
    return parser


# Not the parsers' own defaults: the one of a command would undo what stands before the command.
_DEFAULTS: dict[str, Any] = {
    "data": None, "model": "", "goes_on": False, "system": "", "stop": [], "ban": [],
    "json": False, "json_schema": None, "regex": None,
}  # fmt: skip


def _models(_: argparse.Namespace, folders: Folders) -> int:
    found = list_models(folders.models)
    if not found:
        say(NO_MODEL)
    for model in found:
        size = f"{model.size_bytes / 1e6:,.0f} MB"
        print(f"{model.name}\t{size}\t{model.context_length:,} tokens\t{model.precision}")
    return OK


def _import(options: argparse.Namespace, folders: Folders) -> int:
    destination = folders.models / options.name if options.name else None
    if destination is not None and folder_name(options.name) != options.name:
        raise CommandError(f"“{options.name}” cannot be the name of a folder. Choose another one.")
    if destination is not None and destination.exists():
        raise CommandError(f"There is a model “{options.name}” already. Choose another name.")
    steps = import_model(options.file, folders.models, precision=options.precision)
    with on_interrupt() as interrupted, status_line() as show:
        while not interrupted.is_set():
            try:
                step = next(steps)
            except StopIteration as end:
                made: Path = end.value
                break
            show(f"{step.text}  {step.share:.0%}")
        else:
            steps.close()
            show("")
            say("Cancelled. Nothing was left behind.")
            return INTERRUPTED
    if destination is not None:
        made = made.rename(destination)
    print(made)
    return OK


def _chat(options: argparse.Namespace, folders: Folders) -> int:
    chosen = settings.load(folders.settings)
    model = _find_model(options.model, folders, chosen.last_model)
    store = Store(folders.database)
    try:
        with _Engine(threads=chosen.threads) as engine:
            info = engine.load(model.path)
            chat = _Chat(store, engine, info, _options(options))
            if options.goes_on:
                chat.go_on()
            return _converse(chat) if sys.stdin.isatty() else _answer_piped(chat)
    finally:
        store.close()


def _options(given: argparse.Namespace) -> Options:
    names = {field.name for field in fields(Options)} - {"system_prompt"}
    chosen: dict[str, Any] = {name: getattr(given, name) for name in names if hasattr(given, name)}
    if given.json:
        chosen["answer_format"] = "json"
    elif given.json_schema is not None:
        text = given.json_schema.read_text(encoding="utf-8", errors="replace")
        chosen |= {"answer_format": "json_schema", "answer_grammar": text}
    elif given.regex is not None:
        chosen |= {"answer_format": "regex", "answer_grammar": given.regex}
    return Options(
        system_prompt=given.system,
        stop_strings=tuple(given.stop),
        banned=tuple(given.ban),
        **chosen,
    )


def _find_model(wanted: str, folders: Folders, last: str) -> ModelFolder:
    """The one that is named; else the one used last, else the starter, else any."""
    found = list_models(folders.models)
    if wanted:
        named = [model for model in found if model.name == wanted]
        return named[0] if named else inspect(Path(wanted).absolute())
    if not found:
        raise CommandError(NO_MODEL)
    best = [model for model in found if str(model.path) == last]
    return (best or [model for model in found if model.name == STARTER_NAME] or found)[0]


# ---- the conversation


def _converse(chat: "_Chat") -> int:
    with_editing()
    say(f"{chat.info.name} on {chat.info.device}. {HELP}")
    with on_interrupt():  # Ctrl-C raises only in the input line: a chat is never half saved
        while True:
            try:
                text = read_line("> ")
            except EOFError:
                say()
                return OK
            except KeyboardInterrupt:
                say("\nCtrl-D or /exit ends the chat.")
                continue
            if text.strip() == "/exit":
                return OK
            if text.strip():
                chat.ask(text)


def _answer_piped(chat: "_Chat") -> int:
    text = sys.stdin.read().strip("\r\n")
    if not text.strip():
        raise CommandError("There was no text to answer on the standard input.")
    end = chat.ask(text)
    if isinstance(end, Failed):
        return FAILED
    return INTERRUPTED if end.reason == "stopped" else OK


class _Chat:
    """One conversation, saved as it grows."""

    def __init__(self, store: Store, engine: "_Engine", info: ModelInfo, options: Options) -> None:
        self.info = info
        self._store, self._engine, self._options = store, engine, options
        self._conversation_id: int | None = None
        self._leaf_id: int | None = None
        self._messages: list[Message] = []
        self._first = 0  # in memory

    def go_on(self) -> None:
        """Continue the chat that was used last, if there is one."""
        last = next(iter(self._store.conversations()), None)
        if last is None:
            return
        branch = conversations.branch(self._store.messages(last.id), last.leaf_id)
        self._conversation_id = last.id
        self._leaf_id = branch[-1].id if branch else None
        self._messages = [conversations.to_message(record) for record in branch]
        say(f"“{last.title}”, {len(branch)} messages.")

    def ask(self, text: str) -> Finished | Failed:
        """The question is on the disk before the model hears of it, the answer as it grows."""
        if self._conversation_id is None:
            self._conversation_id = self._store.create_conversation(conversations.title_of(text))
        self._leaf_id = self._store.add_user_message(
            self._conversation_id, self._leaf_id, [PartRecord("text", text)]
        )
        self._messages.append(Message.of("user", text))
        self._leaf_id = self._store.start_answer(
            self._conversation_id, self._leaf_id, self.info.name
        )
        answer = _SavedAnswer(self._store, self._leaf_id)
        with status_line() as show, printer() as write:
            shown = _Shown(answer, show, write)
            end = self._engine.reply(tuple(self._messages), self._options, self._first, shown)
        self._first = max(self._first, shown.first)
        answer.finish(end)
        self._messages.append(answer.message)
        if isinstance(end, Failed):
            say(end.message)
        elif sys.stderr.isatty():
            say(dim(_in_words(end)))
        return end


class _SavedAnswer:
    """An answer and its row. A disk that fills up is told once, and the chat goes on."""

    def __init__(self, store: Store, message_id: int) -> None:
        self._store, self._id = store, message_id
        self._written = conversations.AnswerInProgress()
        self._started = self._saved_at = time.monotonic()
        self._complaint = ""

    @property
    def message(self) -> Message:
        return self._written.message

    def add(self, piece: Piece) -> None:
        self._written.add(piece, thought_seconds=time.monotonic() - self._started)
        if time.monotonic() - self._saved_at >= SAVE_INTERVAL_S:
            self._saved_at = time.monotonic()
            self._try(
                lambda: self._store.update_answer(
                    self._id, self._written.parts, self._written.token_ids
                )
            )

    def finish(self, end: Finished | Failed) -> None:
        if isinstance(end, Failed):
            state = State.FAILED
            details: dict[str, Any] = {"error": end.message, "kind": end.kind}
        else:
            state, details = conversations.STATES[end.reason], {"stats": asdict(end.stats)}
        self._try(
            lambda: self._store.finish_answer(
                self._id, self._written.parts, self._written.token_ids, state, details
            )
        )
        if self._complaint:
            say(self._complaint)

    def _try(self, save: Callable[[], None]) -> None:
        try:
            save()
            self._complaint = ""
        except StoreError as error:
            log.warning("%s", error, exc_info=error)
            self._complaint = str(error)


class _Shown:
    """What happens to each event of an answer: kept, and shown."""

    def __init__(self, answer: _SavedAnswer, show: Any, write: Any) -> None:
        self._answer, self._show, self._write = answer, show, write
        self.first = 0

    def __call__(self, event: Event) -> None:
        if isinstance(event, Prefill) and event.done < event.total:
            self._show(f"Reading {event.done:,} of {event.total:,} tokens")
        elif isinstance(event, Trying):
            self._show(f"Trying {event.beams} answers, {event.tokens:,} tokens each")
        elif isinstance(event, Forgot):
            self.first = event.first
            say(f"The oldest {event.first} messages are left out from here on.")
        elif isinstance(event, Notice):
            say(event.message)
        elif isinstance(event, Piece):
            self._show("")
            self._answer.add(event)
            self._write(event.text, is_thought=event.is_thought)


def _in_words(end: Finished) -> str:
    stats: Stats = end.stats
    words = {
        "length": "the longest answer was reached",
        "context": "the model's memory is full",
        "stopped": "stopped",
    }
    parts = [f"{stats.new_tokens:,} tokens", f"{stats.tokens_per_second:.0f} per second"]
    parts += [f"{stats.avoided:,} avoided"] if stats.avoided else []
    parts += [words[end.reason]] if end.reason in words else []
    return "  ·  ".join(parts)


# ---- the engine on its thread


class _Engine:
    """EngineLoop on a thread of its own, so that Ctrl-C is heard while a model runs."""

    def __init__(self, *, threads: int) -> None:
        self._threads = threads
        self._ready = threading.Event()
        self._loop = EngineLoop(ChatSession(), self._ready.set)
        self._thread = threading.Thread(target=self._loop.run, name="engine", daemon=True)
        self._next_id = 0

    def __enter__(self) -> "_Engine":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.close()
        self._thread.join()

    def load(self, path: Path) -> ModelInfo:
        """Ctrl-C while it loads ends the program: there is nothing to keep yet."""
        loaded: list[ModelInfo] = []

        def take(event: Event) -> None:
            if isinstance(event, Loaded):
                loaded.append(event.model)

        with status_line() as show:
            show(f"Loading {path.name}…")
            end = self._run(Load(self._new_id(), str(path), self._threads), take)
        if isinstance(end, Failed):
            raise CommandError(end.message)
        if not loaded:
            raise KeyboardInterrupt
        return loaded[0]

    def reply(
        self,
        messages: tuple[Message, ...],
        options: Options,
        first: int,
        take: Callable[[Event], None],
    ) -> Finished | Failed:
        return self._run(Reply(self._new_id(), messages, options, first=first), take)

    def _run(self, request: Load | Reply, take: Callable[[Event], None]) -> Finished | Failed:
        with on_interrupt(self._loop.stop):
            self._loop.submit(request)
            while True:
                self._ready.wait(WAKE_S)
                self._ready.clear()
                for event in self._loop.drain():
                    if isinstance(event, Finished | Failed):
                        return event
                    take(event)

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id


if __name__ == "__main__":
    sys.exit(main())
