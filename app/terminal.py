"""What a terminal needs: Ctrl-C that interrupts nothing, a line that changes, text that is safe."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def on_interrupt(act: Callable[[], None] | None = None) -> Iterator[threading.Event]:
    """Ctrl-C calls `act` and sets the event instead of raising in the middle of something."""
    pressed = threading.Event()

    def handle(*_: object) -> None:
        pressed.set()
        if act is not None:
            act()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def status_line() -> Iterator[Callable[[str], None]]:
    """One line on stderr that is written again and again; nothing where stderr is no terminal."""
    is_shown = False

    def show(text: str) -> None:
        nonlocal is_shown
        if sys.stderr.isatty() and (text or is_shown):
            sys.stderr.write("\r\x1b[K" + text)
            sys.stderr.flush()
            is_shown = bool(text)

    try:
        yield show
    finally:
        show("")


@contextmanager
def printer() -> Iterator[Any]:
    """Writes pieces of an answer. Thoughts are dimmed, and left out where nobody looks."""
    is_terminal = sys.stdout.isatty()
    was_thought = False

    def write(text: str, *, is_thought: bool) -> None:
        nonlocal was_thought
        if not text or (is_thought and not is_terminal):
            return
        if was_thought and not is_thought:
            sys.stdout.write("\n\n")
        was_thought = is_thought
        shown = harmless(text) if is_terminal else text
        sys.stdout.write(dim(shown) if is_thought else shown)
        sys.stdout.flush()

    try:
        yield write
    finally:
        sys.stdout.write("\n")
        sys.stdout.flush()


def harmless(text: str) -> str:
    """Without what would steer the terminal: an answer is foreign text."""
    return "".join(
        letter if letter in "\n\t" or letter.isprintable() or ord(letter) > 0x9F else "\ufffd"
        for letter in text
    )


def dim(text: str) -> str:
    return f"\x1b[2m{text}\x1b[0m"


def say(text: str = "") -> None:
    print(text, file=sys.stderr)


def read_line(prompt: str) -> str:
    """One line from the person; here, and only here, Ctrl-C raises KeyboardInterrupt."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return input(prompt)
    finally:
        signal.signal(signal.SIGINT, before)


def with_editing() -> None:
    """Arrow keys and history in the input line, where Python has them."""
    with suppress(ImportError):
        import readline  # noqa: F401 - input() uses it once it is there


def be_robust() -> None:
    """No character of an answer or a question may end the program, nor a stream that is closed.

    A closed one becomes the empty file, before the first file is opened: that would get the free
    number 0, 1 or 2, and whatever native code prints would be written into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - as long as the process
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")
