"""The log: tracebacks go there, from any thread, and the file stays small."""

import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app import logs


@pytest.fixture
def log_file(tmp_path):
    hooks = sys.excepthook, threading.excepthook
    level = logging.getLogger().level
    yield logs.start(tmp_path / "logs")
    logs.stop()
    sys.excepthook, threading.excepthook = hooks
    logging.getLogger().setLevel(level)


def test_exceptions_of_any_thread_are_logged(log_file):
    def fail():
        raise ZeroDivisionError("in a thread")

    thread = threading.Thread(target=fail, name="worker")
    thread.start()
    thread.join()
    try:
        raise LookupError("in the main thread")
    except LookupError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    text = log_file.read_text()
    assert "ZeroDivisionError: in a thread" in text
    assert "LookupError: in the main thread" in text
    assert "Traceback" in text


def test_no_line_is_lost_or_told_in_the_terminal(log_file, capfd):
    logging.getLogger("app.test").info("a file name that is no text: \udcff")
    assert "no text: \\udcff" in log_file.read_text()
    (handler,) = [h for h in logging.getLogger().handlers if hasattr(h, "maxBytes")]
    full = Path("/dev/full")
    if full.exists():
        handler.close()
        handler.baseFilename = str(full)
        logging.getLogger("app.test").info("the disk is full")
    assert capfd.readouterr().err == ""


def test_the_log_turns_over(log_file):
    log = logging.getLogger("app.test")
    for _ in range(60):
        log.info("x" * 100_000)
    files = sorted(path.name for path in log_file.parent.glob("inglenook.log*"))
    assert files == ["inglenook.log", "inglenook.log.1", "inglenook.log.2", "inglenook.log.3"]
    assert all(path.stat().st_size <= 1_000_000 for path in log_file.parent.glob("inglenook.log*"))


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(tmp_path):
    (tmp_path / "file").touch()
    hooks = sys.excepthook, threading.excepthook
    try:
        assert logs.start(tmp_path / "file" / "logs") is None
    finally:
        logs.stop()
        sys.excepthook, threading.excepthook = hooks


@pytest.mark.skipif(sys.platform == "win32", reason="another kind of crash")
def test_a_crash_of_native_code_says_where(tmp_path):
    code = f"from pathlib import Path; from app import logs; logs.start(Path({str(tmp_path)!r}));"
    code += "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1])
    assert done.returncode == -11
    assert "Segmentation fault" in (tmp_path / "crash.log").read_text()
