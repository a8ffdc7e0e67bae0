"""Where a message is written: the field, the model chip, the context meter, send and stop.

Follows one ChatState. What a person does leaves as signals with values; nothing here knows a
store or an engine.
"""

import re

from PySide6.QtCore import (
    QEvent,
    QMimeData,
    QObject,
    QSignalBlocker,
    QSize,
    Qt,
    QTimer,
    Signal,
    Slot,
)
from PySide6.QtGui import (
    QFocusEvent,
    QFontMetrics,
    QGuiApplication,
    QInputMethodEvent,
    QKeyEvent,
    QKeySequence,
    QPaintEvent,
    QResizeEvent,
    QTextOption,
)
from PySide6.QtWidgets import (
    QFrame,
    QPlainTextEdit,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.ui import theme
from app.ui.attachment_tray import AttachmentTray
from app.ui.chat_state import ChatState, SendMode
from app.ui.context_meter import ContextMeter
from app.ui.controls import (
    Chip,
    IconButton,
    Label,
    Panel,
    box,
    painter,
)
from app.ui.items import Notice
from app.ui.model_card import ModelCard
from app.ui.notice import NoticeCard
from app.ui.theme import CAPTION, R_PANEL, READING_WIDTH, S3, color

MOST_LINES = 10
MOST_OF_WINDOW = 0.4
FLASH_MS = 700
NARROW, TIGHT = 620, 560

LONG_PASTE = 8000  # letters from which on a pasted text becomes a file

_ENDLESS_WORD = re.compile(r"\S{4000}")

ENTERS = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
Modifier = Qt.KeyboardModifier


class InputField(QPlainTextEdit):
    """Grows from one to ten lines, then scrolls. Enter is left to an input method that composes."""

    submitted = Signal()
    previous_requested = Signal()  # Up in the empty field
    long_pasted = Signal(str)
    files_pasted = Signal(list)  # paths

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("message")
        self.setAccessibleName("Message")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(2)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.send_with = "enter"
        self._is_composing = False
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self.restyle()

    def restyle(self) -> None:
        self.setFont(theme.reading_font())
        self._fit()

    def set_placeholder(self, text: str) -> None:
        self.setPlaceholderText(text)
        self.viewport().update()  # Qt repaints only when the placeholder comes or goes

    def event(self, event: QEvent) -> bool:
        """With nothing to undo here, the key is the window's: it brings a deleted chat back."""
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.matches(QKeySequence.StandardKey.Undo)
        ):
            event.setAccepted(self.document().isUndoAvailable())
            return event.isAccepted()
        return super().event(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._is_composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Paste):
            self.paste()
            return
        if event.key() in ENTERS and not self._is_composing:
            if self._is_send(event.modifiers()):
                self.submitted.emit()
            else:
                self.insertPlainText("\n")
                self.ensureCursorVisible()
            return
        is_plain = event.modifiers() in (Modifier.NoModifier, Modifier.KeypadModifier)
        if event.key() == Qt.Key.Key_Up and is_plain and not self.toPlainText():
            self.previous_requested.emit()
            return
        super().keyPressEvent(event)

    def _is_send(self, modifiers: Modifier) -> bool:
        pressed = modifiers & ~Modifier.KeypadModifier
        if pressed == Modifier.ControlModifier:
            return True
        return pressed == Modifier.NoModifier and self.send_with == "enter"

    def setPlainText(self, text: str) -> None:
        with QSignalBlocker(self):  # the text before shall not be laid out in the new mode
            super().setPlainText("")
        self._wrap(text)
        super().setPlainText(text)

    @Slot()
    def paste(self) -> None:
        """Files that were copied elsewhere are attached; anything else is text."""
        source = QGuiApplication.clipboard().mimeData()
        paths = [url.toLocalFile() for url in source.urls() if url.isLocalFile()]
        if paths:
            self.files_pasted.emit(paths)
        else:
            super().paste()

    def insertFromMimeData(self, source: QMimeData) -> None:
        if len(source.text()) > LONG_PASTE:
            self.long_pasted.emit(source.text())
            return
        self._wrap(self.toPlainText() + source.text())
        super().insertFromMimeData(source)

    def insertPlainText(self, text: str) -> None:
        if len(text) > 1:
            self._wrap(self.toPlainText() + text)
        super().insertPlainText(text)

    def _wrap(self, text: str) -> None:
        """Qt looks for the start of a word anew on each of its lines: one of a megabyte would
        hold up the window for minutes."""
        mode = QTextOption.WrapMode
        is_endless = _ENDLESS_WORD.search(text) is not None
        self.setWordWrapMode(mode.WrapAnywhere if is_endless else mode.WrapAtWordBoundaryOrAnywhere)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        """Files are for the window, which says what it would do with them; text is for here."""
        is_of_files = any(url.isLocalFile() for url in source.urls())
        return not is_of_files and super().canInsertFromMimeData(source)

    @Slot()
    def _fit(self) -> None:
        """The document's height is counted in lines as they are wrapped."""
        line = QFontMetrics(self.font()).lineSpacing()
        window = self.window()
        room = max(line, int(window.height() * MOST_OF_WINDOW) - 60) if window else line
        lines = max(1, min(round(self.document().size().height()), MOST_LINES, room // line))
        is_cut = self.document().size().height() > lines
        policy = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policy.ScrollBarAsNeeded if is_cut else policy.ScrollBarAlwaysOff
        )
        height = line * lines + 8
        if height != self.height() or self.minimumHeight() != height:
            self.setFixedHeight(height)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def sizeHint(self) -> QSize:
        return QSize(200, self.minimumHeight())


class _Card(Panel):
    """The painted frame; it shows the focus of the field inside it."""

    def __init__(self, field: InputField) -> None:
        super().__init__("raised", "control", R_PANEL)
        self._field = field
        field.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.update()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        has_focus = self._field.hasFocus()
        self.line = "accent" if has_focus else "control"
        self.width_ = 1.5 if has_focus else 1
        super().paintEvent(event)

    def mousePressEvent(self, event: object) -> None:
        self._field.setFocus()


class SendButton(IconButton):
    """One place for send and stop, so that stop is where the hand is."""

    LOOKS: dict[SendMode, tuple[str, str, str, str | None, int]] = {  # noqa: RUF012
        "off": ("send", "Send (Enter)", "on_accent", "accent", 18),
        "send": ("send", "Send (Enter)", "on_accent", "accent", 18),
        "stop": ("stop", "Stop writing (Esc)", "canvas", "text", 22),
        "stopping": ("stop", "Stopping", "muted", None, 22),
    }

    def __init__(self) -> None:
        super().__init__("send", "Send (Enter)", 32, 18, "on_accent", fill="accent", round_=True)
        self.setObjectName("send")
        self.mode: SendMode = "off"
        self.set_mode("off")

    def set_mode(self, mode: SendMode) -> None:
        self.mode = mode
        icon, tip, role, fill, glyph = self.LOOKS[mode]
        self.set_tip(tip)
        self.set_look(icon, role, fill, glyph)
        self.setEnabled(mode in ("send", "stop"))


class Composer(QWidget):
    sent = Signal(str)
    stop_requested = Signal()
    draft_changed = Signal(str)
    model_menu_requested = Signal()
    edit_last_requested = Signal()
    notice_action = Signal(str)
    cancel_requested = Signal()
    attach_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("composer")
        self._state = ChatState()
        self.field = InputField()
        self.model_chip = Chip("model", "Choose a model", name="Choose a model (Ctrl+Shift+M)")
        self.model_chip.setObjectName("model")
        self.attach_button = IconButton("attach", "Attach files (Ctrl+U)", 30, 18)
        self.attach_button.setObjectName("attach")
        self.tray = AttachmentTray()
        self.send_button = SendButton()
        self.meter = ContextMeter()
        self.progress = ModelCard()  # of an import, while the page shows a chat
        self._hint = Label("", CAPTION, "faint")
        self._hint.setObjectName("hint")
        self._warning = Label("Answers can be wrong. Check what matters.", CAPTION, "faint")
        self._flash = QTimer(self, singleShot=True, interval=FLASH_MS)
        self._card_of_notice: NoticeCard | None = None
        self._notice: Notice | None = None
        self._build()
        self._connect()
        self.set_state(self._state)

    def _build(self) -> None:
        bottom = box(
            "h",
            self.attach_button,
            self.model_chip,
            "stretch",
            self.meter,
            4,
            self.send_button,
            margins=(7, 0, 7, 7),
            spacing=6,
        )
        self._card = _Card(self.field)
        text = box("v", self.tray, self.field, margins=(S3 - 1, 9, S3, 6))
        box("v", text, bottom, spacing=0, into=self._card)
        hints = box("h", self._hint, "stretch", self._warning, margins=(S3 + 2, 0, S3 + 2, 0))
        column = QWidget()
        column.setMaximumWidth(READING_WIDTH + 28)
        column.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._notice_slot = QVBoxLayout()
        box("v", self.progress, self._notice_slot, self._card, 6, hints, spacing=0, into=column)
        row = box("h", margins=(10, 8, 10, 9), spacing=0, into=self)
        row.addStretch(1)
        row.addWidget(column, 1000)
        row.addStretch(1)

    def _connect(self) -> None:
        self.field.submitted.connect(self._submit)
        self.field.previous_requested.connect(self.edit_last_requested)
        self.field.textChanged.connect(self._on_text)
        self.send_button.clicked.connect(self._on_button)
        self.attach_button.clicked.connect(self.attach_requested)
        self.model_chip.clicked.connect(self.model_menu_requested)
        self.progress.cancel_requested.connect(self.cancel_requested)
        self._flash.timeout.connect(self._calm)

    # ---- values in
    @Slot(object)
    def set_state(self, state: ChatState) -> None:
        self._state = state
        model = state.model
        self.field.set_placeholder(state.placeholder)
        self.progress.set_model(model)
        self.progress.setVisible(model.importing is not None and state.has_messages)
        self.field.send_with = state.send_with
        self.field.setEnabled(state.is_store_open)
        self._hint.setText(state.hint)
        self.model_chip.set_text(*_chip_words(state))
        tone = "muted" if model.device.upper() == "CPU" else "success"
        self.model_chip.set_badge((model.device.upper(), tone) if model.device else None)
        self.meter.set_state(state)
        self._update_button()

    @Slot(str)
    def set_text(self, text: str) -> None:
        """A chat's draft, or a message that came back. Undo does not lead into another chat."""
        if text != self.field.toPlainText():
            self.field.setPlainText(text)
            cursor = self.field.textCursor()
            cursor.movePosition(cursor.MoveOperation.End)
            self.field.setTextCursor(cursor)

    def insert_text(self, text: str) -> None:
        self.field.setFocus()
        self.field.insertPlainText(text)

    def set_notice(self, notice: Notice | None) -> None:
        """A problem that belongs to what is written here, above the field."""
        self._notice = notice
        if self._card_of_notice is not None:
            self._notice_slot.removeWidget(self._card_of_notice)
            self._card_of_notice.hide()
            self._card_of_notice.deleteLater()
            self._card_of_notice = None
        if notice is not None:
            self._card_of_notice = NoticeCard(notice)
            self._card_of_notice.action.connect(self.notice_action)
            self._notice_slot.addWidget(self._card_of_notice)
        self._notice_slot.setContentsMargins(0, 0, 0, 8 if notice else 0)

    def notice(self) -> Notice | None:
        """What stands above the field now."""
        return self._notice

    def restyle(self) -> None:
        self.field.restyle()

    def text(self) -> str:
        return self.field.toPlainText()

    # ---- what a person does
    @Slot()
    def submit(self) -> None:
        self._submit()

    @Slot()
    def _submit(self) -> None:
        if self._state.is_writing or not self._state.can_send:
            self._hint.set_role("accent")
            self._flash.start()
        elif self._has_message():
            self.sent.emit(self.text())

    @Slot()
    def _on_button(self) -> None:
        if self.send_button.mode == "stop":
            self.stop_requested.emit()
        else:
            self._submit()

    @Slot()
    def _on_text(self) -> None:
        self._update_button()
        self.draft_changed.emit(self.text())

    @Slot()
    def _calm(self) -> None:
        self._hint.set_role("faint")

    @Slot()
    def look_at_files(self) -> None:
        """The tray shows others now."""
        self._update_button()

    def _has_message(self) -> bool:
        """Words or files, and no file that is still being read."""
        states = [item.state for item in self.tray.items()]
        return "reading" not in states and (bool(self.text().strip()) or "ready" in states)

    def _update_button(self) -> None:
        mode = self._state.send_mode(has_text=self._has_message())
        if mode != self.send_button.mode:
            self.send_button.set_mode(mode)

    # ---- looks
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._warning.setVisible(self.width() >= NARROW)
        self.meter.set_narrow(self.width() < NARROW)
        self.model_chip.set_compact(False, 96 if self.width() < TIGHT else 200)
        self.field._fit()

    def focusInEvent(self, event: QFocusEvent) -> None:
        self.field.setFocus(event.reason())

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter(self).fillRect(self.rect(), color("canvas"))


def _chip_words(state: ChatState) -> tuple[str, str]:
    """What the chip shows, and what it is called."""
    model = state.model
    if model.importing is not None:
        share = round(model.importing.share * 100)
        if model.phase == "none":
            return f"Adding, {share} %", f"{model.importing.name} is being added, {share} %"
    if model.phase == "loading":
        return f"Loading {model.name}", f"{model.name} is loading"
    if model.phase == "ready":
        return model.name, f"Model: {model.name}, runs on {model.device} (Ctrl+Shift+M)"
    return "Choose a model", "Choose a model (Ctrl+Shift+M)"
