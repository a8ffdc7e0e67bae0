"""Files, pins and edits are seen with the message that they belong to."""

import pytest

from app.ui.file_chip import FileChip
from app.ui.items import Attachment, Item
from app.ui.message import UserMessage

FILES = (Attachment("notes.md", "4 KB", "1,024 tokens"), Attachment("x" * 300 + ".pdf", "2 MB"))


@pytest.fixture
def message(qtbot):
    made = UserMessage()
    qtbot.addWidget(made)
    return made


def chips(message):
    return [chip for chip in message.findChildren(FileChip) if not chip.isHidden()]


def test_files_stand_above_the_words_and_inside_the_column(message):
    message.fill(Item(1, "user", "Read these", attachments=FILES), is_busy=False)
    with_files = message.place(400)
    found = chips(message)
    assert [chip.attachment for chip in found] == list(FILES)
    assert found[0].accessibleName() == "File notes.md, 4 KB, 1,024 tokens"
    for chip in found:
        assert message.rect().contains(chip.geometry())
        assert chip.geometry().bottom() < message.body.y()
    message.fill(Item(2, "user", "Read these"), is_busy=False)
    assert message.place(400) < with_files
    assert chips(message) == []


def test_marks_of_a_message_are_words(message):
    message.fill(Item(1, "user", "x", is_pinned=True, is_edited=True), is_busy=False)
    message.place(400)
    assert message.marks.text() == "Pinned, Edited"
    assert not message.marks.isHidden()
