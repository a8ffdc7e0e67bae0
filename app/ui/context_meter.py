"""How full the model's memory is, beside the message that is being written."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QAbstractButton

from app.ui.chat_state import ChatState, short_count
from app.ui.controls import (
    Label,
    Ring,
    Segment,
    SegmentMeter,
    box,
    fill_round,
    focus_ring,
    painter,
    tone_of,
)
from app.ui.theme import R_CONTROL, SMALL, color


class ContextMeter(QAbstractButton):
    """How much of what the model can read is used, and by what; a ring where the page is narrow.
    A click lists it."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("context")
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self._meter, self._ring = SegmentMeter(48), Ring(0)
        self._figures = Label("", SMALL, "muted")
        self._used = self._length = 0
        self._is_narrow = False
        for part in (self._meter, self._ring, self._figures):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        box("h", self._meter, self._ring, self._figures, margins=(6, 4, 6, 4), spacing=6, into=self)
        self._ring.hide()
        self.set_state(ChatState())

    def set_state(self, state: ChatState) -> None:
        """As it was counted last; without that, as the last answer left it."""
        length, use = state.model.context_length, state.context
        is_counted = use is not None and state.writing != "here"
        self._used = use.total if use is not None and is_counted else state.context_used
        self._length = length
        self.setVisible(length > 0)
        share = min(1.0, self._used / length) if length else 0.0
        tone = tone_of(share)
        system = use.system if use is not None else 0
        draft = state.draft_tokens if is_counted else 0
        self._meter.set_segments(context_segments(system, self._used, draft, length))
        self._ring.set_share(share, tone)
        self._figures.set_role("muted" if tone == "accent" else tone)
        words = f"{self._used:,} of {length:,} tokens that the model can read are used"
        if draft:
            words += f", {draft:,} of them by what you are typing"
        self.setAccessibleName(words)
        self.setToolTip(f"{words}. Click for what fills it.")
        self._write()

    def set_narrow(self, is_narrow: bool) -> None:
        self._is_narrow = is_narrow
        self._meter.setVisible(not is_narrow)
        self._ring.setVisible(is_narrow)
        self._write()

    def _write(self) -> None:
        figures = short_count(self._used)
        if not self._is_narrow:
            figures += f" / {short_count(self._length)}"
        self._figures.setText(figures)

    def sizeHint(self) -> QSize:
        layout = self.layout()
        assert layout is not None
        return layout.sizeHint()

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw, area = painter(self), QRectF(self.rect())
        if self.underMouse() or self.isDown():
            fill_round(draw, area, R_CONTROL, color("pressed" if self.isDown() else "hover"))
        focus_ring(draw, self, area, R_CONTROL)


def context_segments(system: int, used: int, draft: int, length: int) -> list[Segment]:
    """System prompt, turns, what is typed; the rest is free."""
    if not length:
        return []
    tone = tone_of(min(1.0, used / length))
    turns = max(0, used - system - draft)
    typed = "success" if tone == "accent" else tone
    return [(system / length, "muted"), (turns / length, tone), (draft / length, typed)]
