"""inglenook-cli as people run it: a process of its own, with files, pipes and a terminal."""

import functools
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app import cli
from app.chat.events import Finished, Piece
from app.chat.loop import EngineLoop
from app.chat.messages import Options
from app.convert.progress import Progress
from app.store.records import State
from app.store.store import Store

PROJECT = Path(__file__).parents[2]
needs_terminal = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")


@pytest.fixture
def data(tmp_path, data_folder):
    """A person's data with one model in it."""
    folder = tmp_path / "data"
    shutil.copytree(data_folder / "tiny-llama", folder / "models" / "tiny")
    return folder


def run(*arguments, text=None):
    return subprocess.run(
        [sys.executable, "-m", "app.cli", *map(str, arguments)],
        input=text,
        capture_output=True,
        encoding="utf-8",
        errors="strict",
        cwd=PROJECT,
        timeout=120,
    )


def saved(data):
    store = Store(data / "chats.sqlite3")
    chats = [store.messages(chat.id) for chat in store.conversations()]
    store.close()
    return chats


def test_piped_text_is_one_message_and_the_answer_is_saved(data):
    args = ("--data", data, "--temperature", 0, "--longest-answer", 8)
    done = run(*args, text="What is\nthis? 日本\n")
    assert (done.returncode, done.stderr) == (0, "")
    ((question, answer),) = saved(data)
    assert question.parts[0].text == "What is\nthis? 日本"
    assert answer.parts[0].text + "\n" == done.stdout
    assert (answer.state, answer.model) == (State.LENGTH, "tiny")
    assert len(answer.token_ids) == answer.details["stats"]["new_tokens"] == 8
    assert run("chat", *args, text="What is\nthis? 日本\n").stdout == done.stdout
    more = run(*args, "--continue", text="More")
    assert more.returncode == 0
    assert sorted(len(chat) for chat in saved(data)) == [2, 4]


def test_models_and_import_of_a_folder(data, data_folder):
    assert run("models", "--data", data).stdout.startswith("tiny\t")
    done = run("import", data_folder / "tiny-llama-gqa", "--name", "Second", "--data", data)
    assert (done.returncode, done.stdout.strip()) == (0, str(data / "models" / "Second"))
    names = [line.split("\t")[0] for line in run("models", "--data", data).stdout.splitlines()]
    assert names == ["Second", "tiny"]
    assert (
        run("--model", "Second", "--data", data, "--longest-answer", 2, text="Hi").returncode == 0
    )
    again = run("import", data_folder / "tiny-llama-gqa", "--name", "Second", "--data", data)
    assert (again.returncode, "already" in again.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "text", "words"),
    [
        (("import", "{data}/nothing.gguf"), None, "not there"),
        (("import", "{data}/foreign.gguf"), None, "GGUF"),
        (("import", "{data}/models/tiny", "--name", "../out"), None, "cannot be the name"),
        (("import", "{data}/models/tiny", "--name", "x" * 300), None, "cannot be the name"),
        (("import", "{data}/\udcff.gguf"), None, "not there"),
        (("--model", "{data}/\udcff"), "Hi", "not there"),
        (("--model", "{data}/nowhere"), "Hi", "not there"),
        (("--model", "{data}/cut"), "Hi", "model.onnx"),
        ((), "", "no text"),
        ((), "word " * 600, "longer than the model can read"),
        (("--temperature", "-1"), "Hi", "temperature"),
        (("--regex", "("), "Hi", "The expression cannot be used: unclosed group."),
        (("--json-schema", "{data}/foreign.gguf"), "Hi", "The JSON schema is not JSON"),
        (("--json-schema", "{data}/nowhere"), "Hi", "No such file"),
        (("--data", "{data}/empty"), "Hi", "inglenook-cli import"),
        (("--data", "{data}/foreign.gguf"), "Hi", "inglenook-cli import"),
        (("--data", "{data}/newer", "--model", "{data}/models/tiny"), "Hi", "newer Inglenook"),
    ],
)
def test_what_does_not_work_is_one_sentence(data, arguments, text, words):
    (data / "foreign.gguf").write_bytes(b"not a model at all" * 99)
    shutil.copytree(data / "models" / "tiny", data / "cut")
    (data / "cut" / "model.onnx").write_bytes(b"")
    (data / "newer").mkdir()
    store = Store(data / "newer" / "chats.sqlite3")
    store._disk.writer.execute("PRAGMA user_version = 99")
    store.close()
    given = [argument.format(data=data) for argument in arguments]
    done = run(*([] if "--data" in given else ["--data", data]), *given, text=text)
    assert done.returncode == 1
    assert done.stdout.strip() == ""
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_answers_of_a_form_with_beams_and_without_words(data):
    form = ("--regex", "(yes|no), (one|two)", "--ban", "YES", "--ban", "two")
    done = run("--data", data, *form, text="Hi")
    assert (done.returncode, done.stdout.strip()) == (0, "no, one")
    done = run("--data", data, "--regex", "(yes|no)", "--beams", 3, "--guess", text="Hi")
    assert (done.returncode, done.stdout.strip() in ("yes", "no")) == (0, True)
    more = ("--continue", "--forget", "--no-think", "--longest-answer", 4)
    done = run("--data", data, *more, text="word " * 20)
    assert done.returncode == 0
    assert run("--data", data, "--json", "--regex", "x", text="Hi").returncode == 2


def test_options_count_before_and_after_the_command(data, data_folder):
    expected = run("models", "--data", data).stdout
    assert run("--data", data, "models").stdout == expected
    done = run("--data", data, "import", data_folder / "tiny-llama", "--name", "Second")
    assert done.stdout.strip() == str(data / "models" / "Second")
    args = ("--temperature", 0, "--longest-answer", 4)
    done = run("--data", data, "--model", "Second", *args, "chat", text="Hi")
    assert done.returncode == 0
    ((_, answer),) = saved(data)
    assert answer.model == "Second"


@needs_terminal
@pytest.mark.parametrize(
    ("closed", "code"),
    [("<&-", 1), (">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 1), (">/dev/full", 1)],
)
def test_streams_that_are_closed_or_full(data, closed, code):
    """The answer is saved all the same, and no file takes the number of a closed stream."""
    command = f'echo Hi | "$0" -m app.cli --data "$1" --longest-answer 4 {closed}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, data], capture_output=True, text=True, cwd=PROJECT
    )
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == (code if "2>" not in closed else 0)
    assert not {"Traceback", "Inglenook", "ignored"} & set(done.stderr.split())
    if "<" not in closed:
        ((question, _),) = saved(data)
        assert question.parts[0].text == "Hi"


@needs_terminal
@pytest.mark.parametrize("command", ["models", "--longest-answer 99"])
def test_a_reader_that_left_is_no_traceback(data, command):
    line = f'(echo Hi | "$0" -m app.cli --data "$1" {command}; echo $? >"$1/code") | :'
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, data],
        capture_output=True, text=True, cwd=PROJECT, env=environment,
    )  # fmt: skip
    assert done.stderr == ""
    assert (data / "code").read_text() == "1\n"


def test_wrong_usage_is_another_exit_code(data):
    assert run("frobnicate", "--data", data).returncode == 2
    assert run("--help").returncode == 0


def test_a_bug_shows_no_traceback_and_the_log_has_it(data, monkeypatch, capsys):
    def fail(folder):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(cli, "list_models", fail)
    assert cli.main(["models", "--data", str(data)]) == 1
    shown = capsys.readouterr().err
    assert "Something went wrong inside Inglenook" in shown
    assert "Traceback" not in shown
    log = (data / "logs" / "inglenook.log").read_text()
    assert "ZeroDivisionError: a bug" in log


def test_the_log_has_no_text_of_a_chat(data):
    run("--data", data, "--longest-answer", 4, text="a very secret question " * 99)
    assert "secret" not in "".join(path.read_text() for path in (data / "logs").iterdir())


# ---- Ctrl-C


class EndlessSession:
    """Writes until it is stopped."""

    def handle(self, request, stop):
        while not stop.is_set():
            yield Piece(request.request_id, "word ", token_ids=(1,))
        yield Finished(request.request_id, "stopped")

    def set_options(self, options):
        pass

    def close(self):
        pass


def test_ctrl_c_ends_the_answer_and_not_the_program():
    engine = cli._Engine(threads=0)
    engine._loop = EngineLoop(EndlessSession(), engine._ready.set)
    engine._thread = threading.Thread(target=engine._loop.run)
    pieces = []

    def take(event):
        if not pieces:
            os.kill(os.getpid(), signal.SIGINT)
        pieces.append(event)

    with engine:
        for _ in range(2):
            pieces.clear()
            assert engine.reply((), Options(), 0, take).reason == "stopped"
            assert pieces
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_cancels_an_import(data, monkeypatch, capsys):
    ends = []

    def endless(*_, **__):
        try:
            for step in range(1000):
                if step == 3:
                    os.kill(os.getpid(), signal.SIGINT)
                yield Progress(step, 1000, "Converting")
        finally:
            ends.append(step)

    monkeypatch.setattr(cli, "import_model", endless)
    assert cli.main(["import", "some.gguf", "--data", str(data)]) == cli.INTERRUPTED
    assert ends == [3]
    assert "Nothing was left behind" in capsys.readouterr().err


@needs_terminal
def test_a_conversation_in_a_terminal(data):
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "--data", str(data), "--longest-answer", "12"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=PROJECT,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""

    def until(words, since=0, *, again=None):
        """Where those words end; what came in the same breath after them is looked at next time.

        `again` is done each second until they come: Python's input line notices a signal that
        comes just before it waits only with the next one.
        """
        nonlocal shown
        for _ in range(60):
            while words not in shown[since:] and select.select([ours], [], [], 1)[0]:
                shown += os.read(ours, 4096)
            if words in shown[since:]:
                break
            if again is not None:
                again()
        return shown.index(words, since) + len(words)

    at = until(b"> ")
    os.write(ours, b"Hello?\n")
    at = until(b"per second", at)
    at = until(b"> ", at)
    interrupt = functools.partial(process.send_signal, signal.SIGINT)
    interrupt()  # nothing is being written: the chat goes on
    at = until(b"ends the chat", at, again=interrupt)
    os.write(ours, b"And then?\n")
    at = until(b"per second", at)
    os.write(ours, b"/exit\n")
    assert process.wait(60) == 0
    os.close(ours)
    ((*_, last),) = saved(data)
    assert [record.role for record in saved(data)[0]] == ["user", "assistant"] * 2
    assert last.state in (State.LENGTH, State.DONE)


def test_an_answer_cannot_steer_the_terminal():
    from app.terminal import harmless

    assert harmless("a\x1b[2Jb\r\x07\x9bc\n\té日👩‍👩‍👧\u202e") == "a�[2Jb���c\n\té日👩‍👩‍👧\u202e"
