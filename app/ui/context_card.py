"""What fills the model's memory, as a list; turns are pinned and let go here."""

from PySide6.QtCore import QRectF, QSize, Qt, Slot
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QWidget

from app.chat.messages import ContextUse, Message
from app.store.records import MessageRecord
from app.ui import theme
from app.ui.chat_controller import ChatController
from app.ui.chat_items import text_of
from app.ui.context_meter import context_segments
from app.ui.context_notices import turns_of
from app.ui.controls import HLine, Label, Popover, SegmentMeter, box, button, fill_round, painter
from app.ui.theme import BODY, SMALL, color

Turn = Qt.ItemDataRole.UserRole
EXCERPT = 60
MOST_ROWS = 8


class _Swatch(QWidget):
    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role
        self.setFixedSize(10, 10)

    def paintEvent(self, _event: QPaintEvent) -> None:
        fill_round(painter(self), QRectF(self.rect()), 3, color(self._role))


def _tick_style() -> str:
    """Without it, the style draws black boxes over a transparent list."""
    line, ground, on = (color(role).name() for role in ("control", "field", "accent"))
    return (
        "QListWidget::indicator { width: 12px; height: 12px; border-radius: 3px;"
        f" border: 1px solid {line}; background: {ground}; }}"
        f"QListWidget::indicator:checked {{ background: {on}; border: 1px solid {on}; }}"
    )


class ContextCard(Popover):
    def __init__(self, chat: ChatController) -> None:
        super().__init__(theme.u(380))
        use = chat.context.use
        assert use is not None
        self._chat = chat
        self.setAccessibleName("What fills the model's memory")
        self.body.addWidget(Label("What fills the model's memory", BODY, "text", 600))
        bar = SegmentMeter(None, 8)
        draft = chat.context.draft_tokens()
        bar.set_segments(context_segments(use.system, use.total, draft, use.limit))
        self.body.addWidget(bar)
        self.facts = facts_of(use, draft)
        for role, what, much in self.facts:
            figure = Label(much, SMALL, "text", 500)
            self.body.addLayout(
                box("h", _Swatch(role), Label(what, SMALL, "muted"), "stretch", figure, spacing=8)
            )
        self.turns = QListWidget()
        self._fill_turns(chat.here.branch(), chat.context.messages, use)
        if self.turns.count():
            self._add_turns()
        if chat.here.memory_start is not None:
            again = button("Remember all again", "", "undo")
            again.clicked.connect(self._remember_all)
            self.body.addLayout(box("h", "stretch", again))

    def _add_turns(self) -> None:
        self.body.addWidget(HLine())
        words = "A ticked turn is never forgotten. Those that are not read are grey."
        self.body.addWidget(Label(words, SMALL, "muted", wrap=True))
        row = theme.u(28)
        self.turns.setFixedHeight(row * min(self.turns.count(), MOST_ROWS) + 6)
        self.turns.setUniformItemSizes(True)
        self.turns.setStyleSheet(_tick_style())
        self.turns.setAccessibleName("Turns, ticked where they are never forgotten")
        self.turns.itemChanged.connect(self._on_ticked)
        self.body.addWidget(self.turns)

    def _fill_turns(
        self, shown: list[MessageRecord], messages: tuple[Message, ...], use: ContextUse
    ) -> None:
        for turn in turns_of(messages):
            records = [shown[index] for index in turn if index < len(shown)]
            if not records:
                continue
            tokens = sum(use.turns[index] for index in turn)
            words = " ".join(text_of(records[0].parts).split())
            words = words if len(words) <= EXCERPT else words[: EXCERPT - 1] + "…"
            entry = QListWidgetItem(f"{tokens:,}   {words}" if tokens else f"not read   {words}")
            entry.setSizeHint(QSize(0, theme.u(28)))
            entry.setToolTip(f"{words}\n{tokens:,} tokens")
            entry.setFlags(Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsUserCheckable)
            is_pinned = any(record.is_pinned for record in records)
            entry.setCheckState(Qt.CheckState.Checked if is_pinned else Qt.CheckState.Unchecked)
            entry.setData(Turn, [record.id for record in records])
            if not tokens:
                entry.setForeground(color("muted"))
            self.turns.addItem(entry)

    @Slot(QListWidgetItem)
    def _on_ticked(self, entry: QListWidgetItem) -> None:
        is_pinned = entry.checkState() == Qt.CheckState.Checked
        self._chat.branches.pin_turn(entry.data(Turn), is_pinned=is_pinned)

    @Slot()
    def _remember_all(self) -> None:
        self._chat.branches.remember_all()
        self.close()


def facts_of(use: ContextUse, draft: int) -> list[tuple[str, str, str]]:
    """(colour, what, how much)."""
    turns = sum(use.turns) - draft
    words = max(0, use.total - use.system - turns - draft)  # of the template
    return [
        ("muted", "System prompt", f"{use.system:,} tokens"),
        ("accent", "Messages", f"{turns + words:,} tokens"),
        ("success", "What you are typing", f"{draft:,} tokens"),
        ("pressed", "Free for the answer", f"{max(0, use.limit - use.total):,} tokens"),
    ]
