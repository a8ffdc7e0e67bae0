"""What made an answer: model, options, seed, times; to be copied, and to be tried again."""

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from app.store.records import MessageRecord
from app.ui import theme
from app.ui.controls import Label, Popover, box, button
from app.ui.statistics import facts_of
from app.ui.theme import BODY, SMALL

TALLEST = 380
KEY_WIDTH = 128


class MadeCard(Popover):
    """`replay_requested` only where `why_not` is empty: it says why it cannot be tried again."""

    replay_requested = Signal(int)

    def __init__(self, record: MessageRecord, why_not: str = "") -> None:
        super().__init__(theme.u(340))
        self.facts = facts_of(record)
        self._key = record.id
        self.setAccessibleName("What made this answer")
        self.setAccessibleDescription(", ".join(f"{what} {much}" for what, much in self.facts))
        self.body.setSpacing(4)
        self.body.addWidget(Label("What made this answer", BODY, "text", 600))
        self.body.addWidget(self._list())
        if why_not:
            self.body.addWidget(Label(why_not, SMALL, "muted", wrap=True))
        self.replay = button("Replay", "", "regenerate")
        self.replay.setToolTip("Write it again with the same options and seed, and compare")
        self.replay.setEnabled(not why_not)
        self.replay.clicked.connect(self._replay)
        self.copy = button("Copy", "", "copy")
        self.copy.clicked.connect(self._copy)
        self.body.addSpacing(4)
        self.body.addLayout(box("h", "stretch", self.replay, self.copy, spacing=6))

    def _list(self) -> QWidget:
        rows = []
        for what, much in self.facts:
            value = Label(much, SMALL, "text", 500, wrap=True)
            value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            key = Label(what, SMALL, "muted")
            key.setFixedWidth(theme.u(KEY_WIDTH))
            rows.append(box("h", key, (value, 1), spacing=8))
        inside = QWidget()
        box("v", *rows, spacing=4, into=inside)
        area = QScrollArea()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.viewport().setAutoFillBackground(False)
        area.setWidget(inside)
        inside.setAutoFillBackground(False)
        width = theme.u(340) - 40
        wanted = inside.heightForWidth(width) if inside.hasHeightForWidth() else -1
        area.setFixedHeight(min(max(wanted, inside.sizeHint().height()), theme.u(TALLEST)))
        return area

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText("\n".join(f"{w}: {m}" for w, m in self.facts))
        self.close()

    @Slot()
    def _replay(self) -> None:
        self.close()
        self.replay_requested.emit(self._key)
