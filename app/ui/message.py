"""One entry of the transcript as a widget. TranscriptView keeps a few of each kind and fills them
anew; they are laid out by hand, so that a height is known without showing anything.

Every kind answers the same few calls: fill, stream, place, set_busy, set_active, anchors.
"""

from typing import Any

from PySide6.QtCore import QEvent, QRectF, Qt, Signal
from PySide6.QtGui import QEnterEvent, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.ui import theme
from app.ui.controls import IconButton, Label, fill_round, painter
from app.ui.file_chip import FileChip
from app.ui.items import Item
from app.ui.message_parts import (
    ActionRow,
    BranchSwitch,
    Disclosure,
    EditField,
    MemoryLine,
    StateLine,
    header_words,
    thinking_words,
)
from app.ui.notice import NoticeCard
from app.ui.richtext import SLICE, RichText
from app.ui.theme import R_CARD, R_PANEL, SMALL, color

EDGE = 10  # room around a message for its focus ring


class MessageWidget(QWidget):
    """Base of all kinds. Its width is that of the text column plus EDGE on both sides."""

    action = Signal(str)
    link_activated = Signal(str)
    edited = Signal(str)
    resized = Signal()  # it needs another height, by its own doing
    is_kept = False  # True while it holds what would be lost with it (an edit)
    SAVE = "Save and send"  # what the end of an edit does

    def __init__(self) -> None:
        super().__init__()
        self.item = Item(0, "user")
        self.editor: EditField | None = None
        self.memory_line: MemoryLine | None = None
        self.is_busy = False
        self._is_active = False  # hovered, focused, or the focus is inside
        self._has_focus_inside = False
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)

    def fill(self, item: Item, *, is_busy: bool, is_unfolded: bool = False) -> None:
        raise NotImplementedError

    def stream(self, item: Item) -> None:
        """The text or the thoughts became longer; everything else is as it was."""
        self.fill(item, is_busy=self.is_busy)

    def bodies(self) -> list[RichText]:
        """The texts that it shows, from top to bottom."""
        return []

    @property
    def has_more(self) -> bool:
        """Whether a long text is drawn only in part; advance() draws more of it."""
        return any(body.has_more for body in self.bodies())

    def advance(self) -> None:
        for body in self.bodies():
            if body.has_more:
                body.advance()

    def place(self, width: int) -> int:
        raise NotImplementedError

    def set_busy(self, is_busy: bool) -> None:
        """While any answer is written, nothing can be edited or written again."""
        self.is_busy = is_busy

    def redraw(self) -> None:
        """In the colours and text size of now."""
        for body in self.bodies():
            body.redraw()

    def body_at(self, y: int) -> tuple[RichText, int] | None:
        """The text at this height and how far down in it that is: what a reader looks at."""
        for body in self.bodies():
            if not body.isHidden() and body.y() <= y < body.y() + body.height():
                return body, y - body.y()
        return None

    def _place_memory_line(self, width: int) -> int:
        """The line above the first message that the model reads; the height that it takes."""
        if self.item.begins_memory and self.memory_line is None:
            self.memory_line = MemoryLine()
            self.memory_line.setParent(self)
        if self.memory_line is None:
            return 0
        self.memory_line.setVisible(self.item.begins_memory)
        self.memory_line.setGeometry(EDGE, EDGE, width, MemoryLine.HEIGHT)
        return MemoryLine.HEIGHT + 6 if self.item.begins_memory else 0

    # ---- editing in place
    def begin_edit(self) -> None:
        if self.editor is None:
            self.editor = EditField(self.item.text, self.SAVE)
            self.editor.setParent(self)
            self.editor.saved.connect(self._save)
            self.editor.cancelled.connect(self._cancel)
            self.editor.resized.connect(self.resized)
            self.is_kept = True
            self._refresh_activity()
            self.resized.emit()
        self.editor.show()
        self.editor.field.setFocus(Qt.FocusReason.OtherFocusReason)
        self.editor.field.moveCursor(self.editor.field.textCursor().MoveOperation.End)

    def end_edit(self) -> None:
        if self.editor is None:
            return
        self.editor.hide()
        self.editor.deleteLater()
        self.editor, self.is_kept = None, False
        self._refresh_activity()

    def _cancel(self) -> None:
        self.end_edit()
        self.setFocus(Qt.FocusReason.OtherFocusReason)
        self.resized.emit()

    def _save(self, text: str) -> None:
        self.end_edit()
        self.resized.emit()
        self.edited.emit(text)

    # ---- hover and focus
    def set_focus_inside(self, has_focus: bool) -> None:
        self._has_focus_inside = has_focus
        self._refresh_activity()

    def _refresh_activity(self) -> None:
        self._set_active(self._has_focus_inside or self.underMouse())

    def _set_active(self, is_active: bool) -> None:
        self._is_active = is_active

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self._refresh_activity()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._refresh_activity()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.hasFocus():
            area = QRectF(self.rect()).adjusted(1, 1, -1, -1)
            fill_round(painter(self), area, R_CARD, None, color("accent"), 2)


class AssistantMessage(MessageWidget):
    """Who wrote it, thoughts, text, how it stands, what can be done with it."""

    SAVE = "Save as a version"

    def __init__(self) -> None:
        super().__init__()
        self.header = Label("", SMALL, "muted", 500)
        self.disclosure, self.body, self.action_row = Disclosure(), RichText(), ActionRow()
        self.state = StateLine()
        self.thought: RichText | None = None  # made when thoughts are first opened
        for widget in (self.header, self.disclosure, self.body, self.state, self.action_row):
            widget.setParent(self)
        self.disclosure.clicked.connect(self._fold)
        self.body.link_activated.connect(self.link_activated)
        self.action_row.action.connect(self.action)

    def fill(self, item: Item, *, is_busy: bool, is_unfolded: bool = False) -> None:
        if item.key != self.item.key:
            self.end_edit()
        is_same = item.key == self.item.key and self.body.text == self.item.text != ""
        self.item, self.is_busy = item, is_busy
        self.disclosure.setChecked(is_unfolded)
        if item.is_writing:
            self.body.stream(item.text)
        elif is_same or self.body.is_streaming:
            self.body.finish(item.text)
        else:
            self.body.set_markdown(item.text)
        self._fill_around()

    def stream(self, item: Item) -> None:
        self.item = item
        self.body.stream(item.text)
        self._fill_around()

    def _fill_around(self) -> None:
        item = self.item
        self.header.setText(header_words(item))
        self.disclosure.set_words(thinking_words(item))
        self.state.set_item(item)
        self.action_row.fill(item, is_busy=self.is_busy)
        self._show_thought()
        self.header.setVisible(bool(self.header.text()))
        self.disclosure.setVisible(bool(item.thought) or item.is_thinking)
        self.state.setVisible(bool(self.state.text))
        self._refresh_activity()
        self.setAccessibleName(f"Answer from {item.model}" if item.model else "Answer")

    def _show_thought(self) -> None:
        is_open = self.disclosure.isChecked() and bool(self.item.thought)
        if is_open and self.thought is None:
            self.thought = RichText(self)
            self.thought.setAccessibleName("Thoughts")
            self.thought.link_activated.connect(self.link_activated)
        if self.thought is None:
            return
        if is_open and self.item.is_thinking:
            self.thought.stream(self.item.thought)
        elif is_open:
            self.thought.finish(self.item.thought)
        self.thought.setVisible(is_open)

    def unfold(self) -> None:
        if not self.disclosure.isChecked():
            self.disclosure.click()

    def _fold(self) -> None:
        self._fill_around()
        self.action.emit("unfold" if self.disclosure.isChecked() else "fold")
        self.resized.emit()

    def set_busy(self, is_busy: bool) -> None:
        super().set_busy(is_busy)
        self.action_row.fill(self.item, is_busy=is_busy)

    def bodies(self) -> list[RichText]:
        return [body for body in (self.thought, self.body) if body is not None]

    def _set_active(self, is_active: bool) -> None:
        super()._set_active(is_active)
        item = self.item
        has_content = bool(item.text) or not item.is_writing
        is_read = self.editor is None
        wants_row = is_active or item.is_last or item.is_writing
        self.action_row.setVisible(has_content and is_read and wants_row)
        self.body.setVisible(is_read and (bool(item.text) or (item.is_writing and not item.status)))

    def place(self, width: int) -> int:
        y = EDGE + self._place_memory_line(width)
        if not self.header.isHidden():
            self.header.setGeometry(EDGE, y, width, 20)
            y += 26
        if not self.disclosure.isHidden():
            self.disclosure.setGeometry(EDGE - 4, y, self.disclosure.sizeHint().width(), 28)
            y += 36
        if self.thought is not None and not self.thought.isHidden():
            self.thought.move(EDGE + 14, y)
            y += self.thought.place(width - 14) + 4
        if self.editor is not None:
            self.editor.move(EDGE, y)
            y += self.editor.place(width) + 6
        if not self.body.isHidden():
            self.body.move(EDGE, y)
            y += max(self.body.place(width), theme.reading_px() + 9)
        if not self.state.isHidden():
            self.state.setGeometry(EDGE, y, width, 24)
            y += 28
        if self.item.text or not self.item.is_writing:
            self.action_row.setGeometry(EDGE - 5, y + 4, width + 5, 28)
            y += 32
        self.setFixedSize(width + 2 * EDGE, y + EDGE)
        return y + EDGE

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.thought is not None and not self.thought.isHidden():
            place = self.thought.geometry()
            bar = QRectF(EDGE + 2, place.top(), 3, place.height() - 6)
            fill_round(painter(self), bar, 1.5, color("line"))


class UserMessage(MessageWidget):
    """What the person wrote, exactly as typed, in a bubble; and the field to change it."""

    WIDEST = 0.78  # of the column
    PAD_X, PAD_Y = 14, 8
    LEADING = 2  # what a line has below its letters more than above them

    def __init__(self) -> None:
        super().__init__()
        self.body = RichText(self)
        self.copy = self._button("copy", "Copy message")
        self.edit = self._button("edit", "Edit message")
        self.more = self._button("more", "More")
        self.marks = Label("", SMALL, "muted", 500)
        self.marks.setParent(self)
        self.branch = BranchSwitch()
        self.branch.setParent(self)
        self.branch.action.connect(self.action)
        self._bubble = QRectF()
        self._chips: list[FileChip] = []

    def _button(self, icon: str, tip: str) -> IconButton:
        made = IconButton(icon, tip)
        made.setParent(self)
        made.setProperty("action", icon)
        made.clicked.connect(self._clicked)
        return made

    def _clicked(self) -> None:
        self.action.emit(self.sender().property("action"))

    def fill(self, item: Item, *, is_busy: bool, is_unfolded: bool = False) -> None:
        if item.key != self.item.key:
            self.end_edit()
        self.item = item
        if self.body.text != item.text or not item.text:
            self.body.set_plain(item.text)
        self._fill_chips()
        self.setAccessibleName("You, pinned" if item.is_pinned else "You")
        self.set_busy(is_busy)

    def set_busy(self, is_busy: bool) -> None:
        super().set_busy(is_busy)
        self.edit.setEnabled(not is_busy)
        if self.item.branch:
            self.branch.set_branch(self.item.branch, is_busy=is_busy)
        self._refresh_activity()

    def bodies(self) -> list[RichText]:
        return [self.body]

    def _fill_chips(self) -> None:
        """One chip for each file that went along."""
        if [chip.attachment for chip in self._chips] == list(self.item.attachments):
            return
        for chip in self._chips:
            chip.hide()
            chip.deleteLater()
        self._chips = [FileChip(attachment) for attachment in self.item.attachments]
        for chip in self._chips:
            chip.setParent(self)
            chip.show()

    def _place_chips(self, width: int, top: int) -> int:
        """At the right, from the top; the height that they take."""
        y = top
        for chip in self._chips:
            wide = min(chip.sizeHint().width(), width)
            chip.setGeometry(EDGE + width - wide, y, wide, FileChip.HEIGHT)
            y += FileChip.HEIGHT + 4
        return y - top

    # ---- looks
    def _set_active(self, is_active: bool) -> None:
        super()._set_active(is_active)
        is_read = self.editor is None
        self.body.setVisible(is_read)
        self.copy.setVisible(is_active and is_read)
        self.edit.setVisible(is_active and is_read)
        self.more.setVisible(is_active and is_read)
        marks = [*(["Pinned"] if self.item.is_pinned else []), *self._edited_mark()]
        self.marks.setText(", ".join(marks))
        self.marks.setVisible(is_read and bool(marks))
        self.branch.setVisible(is_read and self.item.branch is not None)

    def place(self, width: int) -> int:
        top = EDGE + self._place_memory_line(width)
        top += self._place_chips(width, top)
        if self.editor is not None:
            self.editor.move(EDGE, top)
            height = self.editor.place(width) + top + EDGE
            self.setFixedSize(width + 2 * EDGE, height)
            return height
        most = int(width * self.WIDEST) - 2 * self.PAD_X
        is_long = len(self.item.text) > SLICE
        inner = most if is_long else self.body.natural_width(most)
        text_height = self.body.place(max(inner, 1))
        height = text_height + 2 * self.PAD_Y
        left = EDGE + width - inner - 2 * self.PAD_X
        self._bubble = QRectF(left, top, inner + 2 * self.PAD_X, height)
        self.body.move(left + self.PAD_X, top + self.PAD_Y + self.LEADING)
        self._place_buttons(left, top + height)
        self.setFixedSize(width + 2 * EDGE, height + top + EDGE)
        return height + top + EDGE

    def _edited_mark(self) -> list[str]:
        return ["Edited"] if self.item.is_edited else []

    def _place_buttons(self, right: int, bottom: int) -> None:
        x, y = right - 8, bottom - 32
        if self.item.branch is not None:
            self.branch.adjustSize()
            x -= self.branch.sizeHint().width()
            self.branch.move(x, y + 2)
        if self.marks.text():
            width = self.marks.sizeHint().width()
            x -= width + 4
            self.marks.setGeometry(x, y, width, 30)
        for button in (self.more, self.edit, self.copy):
            x -= 30
            button.move(x, y)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.editor is None:
            fill_round(painter(self), self._bubble, R_PANEL, color("bubble"))
        super().paintEvent(event)


class NoticeMessage(MessageWidget):
    """A notice in the flow of the conversation."""

    def __init__(self) -> None:
        super().__init__()
        self._card: NoticeCard | None = None
        self._width = 0

    def fill(self, item: Item, *, is_busy: bool, is_unfolded: bool = False) -> None:
        if self._card is not None and item.notice == self.item.notice:
            self.item = item
            return
        self.item = item
        if self._card is not None:
            self._card.deleteLater()
        self._card = NoticeCard(item.notice) if item.notice else None
        if self._card is not None:
            self._card.setParent(self)
            self._card.action.connect(self.action)
            self._card.resized.connect(self.resized)
            self._card.show()
            self.setAccessibleName(self._card.accessibleName())

    def place(self, width: int) -> int:
        height = 0
        if self._card is not None:
            height = self._card.height_for(width)
            self._card.setGeometry(EDGE, EDGE, width, height)
        self.setFixedSize(width + 2 * EDGE, height + 2 * EDGE)
        return height + 2 * EDGE


KINDS: dict[str, Any] = {
    "user": UserMessage,
    "assistant": AssistantMessage,
    "notice": NoticeMessage,
}
