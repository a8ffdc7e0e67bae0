"""The rest of the window, one story each, in the real application with the real model."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STARTER = "SmolLM2-135M-Instruct"
LONG = "Write a very long story about a lighthouse keeper and her seven cats."
CANARY = "quokkaparade"

pytestmark = [pytest.mark.end_to_end, pytest.mark.starter]


def ready(open_window: Callable[..., Any], data: Path) -> Any:
    window = open_window(data).appear()
    window.wait_until(lambda: window.reads(f"{STARTER} is ready"), "the model's name")
    return window


def answers(window: Any) -> list[dict[str, Any]]:
    return [row for row in window.messages() if row["role"] == "assistant"]


def wait_for(window: Any, count: int, *states: str) -> list[dict[str, Any]]:
    def found() -> list[dict[str, Any]]:
        rows = [row for row in answers(window) if row["state"] in states]
        return rows if len(rows) == count else []

    return window.wait_until(found, f"{count} answers {states}")


def say(window: Any, text: str) -> None:
    window.type(text)
    window.key("Return")


def stop_after(window: Any, least: int) -> dict[str, Any]:
    """Stops the answer that is being written, once so many of its tokens are stored."""

    def written() -> bool:
        rows = [row for row in answers(window) if row["state"] == "writing"]
        return bool(rows) and len(rows[0]["token_ids"]) >= least

    window.wait_until(written, f"{least} tokens")
    window.key("Escape")
    return wait_for(window, 1, "stopped")[0]


def test_a_chat_is_found_by_a_word_and_opened(open_window: Callable[..., Any], data: Path) -> None:
    window = ready(open_window, data)
    say(window, "Recipes with kelp")
    stop_after(window, 2)
    window.key("ctrl+n")
    window.wait_until(lambda: window.reads("What would you like to work on?"), "the new chat")
    window.key("ctrl+k")
    window.the(id="find-anything")
    window.type("kelp")
    window.key("Return")
    window.wait_until(lambda: window.the(id="title").name == "Recipes with kelp", "the chat")


def test_a_stopped_answer_goes_on_where_it_stands(
    open_window: Callable[..., Any], data: Path
) -> None:
    window = ready(open_window, data)
    say(window, LONG)
    stopped = stop_after(window, 8)
    window.click(name="Continue")
    window.wait_until(
        lambda: len(answers(window)[0]["token_ids"]) > len(stopped["token_ids"]), "more of it"
    )
    window.key("Escape")
    longer = wait_for(window, 1, "stopped", "done", "length")[0]
    assert longer["id"] == stopped["id"]
    assert longer["token_ids"][: len(stopped["token_ids"])] == stopped["token_ids"]
    assert longer["text"].startswith(stopped["text"])


def test_a_file_that_was_copied_goes_along_and_is_stored(
    open_window: Callable[..., Any], data: Path, tmp_path: Path
) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text(f"The {CANARY} begins at nine.", encoding="utf-8")
    window = ready(open_window, data)
    copied = subprocess.Popen(
        ["xclip", "-selection", "clipboard", "-t", "text/uri-list", "-in", "-quiet"],
        env=window.desktop.environment,
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    assert copied.stdin is not None
    copied.stdin.write(f"{notes.as_uri()}\r\n".encode())
    copied.stdin.close()
    window.click(id="message")
    window.key("ctrl+v")
    window.wait_until(lambda: window.reads("notes.md"), "the file's chip")
    window.wait_until(lambda: window.reads("tokens"), "its cost")
    say(window, "When does it begin?")
    window.wait_until(lambda: len(answers(window)) == 1, "an answer")
    parts = window.rows("SELECT kind, text FROM part WHERE kind = 'file'")
    assert parts == [{"kind": "file", "text": f"The {CANARY} begins at nine."}]
    window.key("Escape")
    copied.terminate()
    copied.wait(20)


def test_a_temporary_chat_is_nowhere_on_the_disk(
    open_window: Callable[..., Any], data: Path
) -> None:
    window = ready(open_window, data)
    window.key("ctrl+shift+t")
    window.wait_until(lambda: window.reads("Temporary"), "the words above the chat")
    say(window, f"Say something about a {CANARY}.")
    window.wait_until(lambda: window.reads("first token"), "the answer's figures")
    window.type(f"and the {CANARY} again")
    assert window.messages() == []
    assert window.quit() == 0
    left = [
        file
        for file in data.rglob("*")
        if file.is_file() and not file.is_relative_to(data / "models")
    ]
    assert left
    assert [file.name for file in left if CANARY.encode() in file.read_bytes()] == []


def test_nothing_listens_and_nothing_is_asked_of_the_network(
    open_window: Callable[..., Any], data: Path
) -> None:
    window = ready(open_window, data)
    say(window, "[a link](https://example.com/x) ![a picture](https://example.com/y.png)")
    window.wait_until(lambda: len(answers(window)) == 1, "an answer")
    held = {
        link.readlink().name
        for link in Path(f"/proc/{window.process.pid}/fd").iterdir()
        if link.is_symlink()
    }
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        lines = Path(f"/proc/{window.process.pid}/net/{kind}").read_text().splitlines()[1:]
        assert not [line for line in lines if f"socket:[{line.split()[9]}]" in held]
    window.key("Escape")


def choose_file(window: Any, path: Path) -> None:
    """In the dialog that is open: its whole name, then Enter."""
    window.the(id="fileNameEdit")
    window.key("ctrl+a")
    window.type(str(path))
    window.key("Return")


def run_command(window: Any, words: str) -> None:
    window.key("ctrl+k")
    window.the(id="find-anything")
    window.type(words)
    window.wait_until(lambda: window.reads(words), "the command")
    window.key("Return")


def test_a_chat_goes_into_a_file_and_comes_back(
    open_window: Callable[..., Any], data: Path, tmp_path: Path
) -> None:
    window = ready(open_window, data)
    say(window, f"Recipes with {CANARY}")
    stopped = stop_after(window, 3)
    window.key("ctrl+shift+e")
    whole = tmp_path / "chat.json"
    choose_file(window, whole)
    window.wait_until(whole.exists, "the file")
    window.wait_until(lambda: window.reads("Exported"), "the notice")
    window.key("ctrl+shift+BackSpace")
    window.wait_until(
        lambda: window.rows("SELECT 1 FROM conversation WHERE deleted_at IS NOT NULL"), "the bin"
    )
    run_command(window, "Import chats")
    choose_file(window, whole)
    window.wait_until(lambda: window.reads("1 chat imported"), "the notice")
    kept = window.rows("SELECT id FROM conversation WHERE deleted_at IS NULL")
    assert len(kept) == 1
    again = [row for row in window.messages() if row["conversation_id"] == kept[0]["id"]]
    assert [row["text"] for row in again] == [f"Recipes with {CANARY}", stopped["text"]]
    assert again[1]["token_ids"] == stopped["token_ids"]


def test_a_folder_is_made_and_the_models_are_looked_at(
    open_window: Callable[..., Any], data: Path
) -> None:
    window = ready(open_window, data)
    say(window, f"Notes on {CANARY}")
    stop_after(window, 2)
    window.key("ctrl+shift+n")
    window.wait_until(
        lambda: "focused" not in window.the(id="message").states, "the field of the new name"
    )
    window.type("Letters")
    window.key("Return")
    window.wait_until(
        lambda: window.rows("SELECT 1 FROM folder WHERE name = 'Letters'"), "the folder"
    )
    window.key("ctrl+shift+p")
    window.wait_until(lambda: window.rows("SELECT 1 FROM conversation WHERE is_pinned"), "the pin")
    window.key("ctrl+shift+l")
    window.wait_until(lambda: window.reads("Memory on this device"), "the page of models")
    assert window.reads(STARTER)
    assert window.reads("In use")
    window.key("Escape")
    window.wait_until(lambda: window.find(id="message"), "the chat again")
