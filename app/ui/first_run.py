"""What stands in an empty chat: what one could do, and how to get a model if there is none."""

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QFrame, QScrollArea, QSizePolicy, QWidget

from app.ui import icons
from app.ui.chat_state import ModelState
from app.ui.controls import (
    IconLabel,
    Label,
    Panel,
    box,
    button,
    fill_round,
    focus_ring,
    painter,
)
from app.ui.model_card import ModelCard
from app.ui.theme import BODY, DISPLAY, R_CARD, READING, READING_WIDTH, S3, SMALL, color, font


@dataclass(frozen=True)
class Idea:
    icon: str
    title: str
    text: str
    starter: str  # what the message field begins with


IDEAS = (
    Idea("summary", "Summarise a text", "Paste it", "Summarise this text in a few sentences:\n\n"),
    Idea("pen", "Draft a reply", "Paste the message you got", "Draft a reply to this message:\n\n"),
    Idea("code", "Explain some code", "Any language", "Explain what this code does:\n\n"),
    Idea(
        "edit", "Improve a text", "Clearer and shorter", "Make this text clearer and shorter:\n\n"
    ),
)


class IdeaButton(QAbstractButton):
    def __init__(self, idea: Idea) -> None:
        super().__init__()
        self._idea = idea
        self.setText(idea.title)
        self.setAccessibleName(f"{idea.title}. {idea.text}")
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        return QSize(200, 54)

    def minimumSizeHint(self) -> QSize:
        return QSize(150, 54)

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw = painter(self)
        area = QRectF(self.rect())
        ground = "pressed" if self.isDown() else "hover" if self.underMouse() else None
        fill_round(draw, area, R_CARD, color(ground) if ground else None, color("line"))
        middle = area.center().y()
        icons.paint(draw, self._idea.icon, QRectF(S3, middle - 10, 20, 20), "accent")
        text = area.adjusted(S3 + 20 + S3, 9, -S3, -9)
        for words, used, role, place in (
            (self._idea.title, font(BODY, 500), "text", Qt.AlignmentFlag.AlignTop),
            (self._idea.text, font(SMALL), "muted", Qt.AlignmentFlag.AlignBottom),
        ):
            draw.setFont(used)
            draw.setPen(color(role))
            shown = draw.fontMetrics().elidedText(
                words, Qt.TextElideMode.ElideRight, int(text.width())
            )
            draw.drawText(text, place, shown)
        focus_ring(draw, self, area, R_CARD)


class FirstRun(QWidget):
    idea_chosen = Signal(str)
    open_requested = Signal()
    cancel_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("first-run")
        self.card = ModelCard()
        self._ideas = [IdeaButton(idea) for idea in IDEAS]
        self._drop = self._make_drop()
        column = QWidget()
        column.setMaximumWidth(READING_WIDTH)
        rows = box("v", spacing=8)
        for i in (0, 2):
            pair = self._ideas[i : i + 2]
            rows.addLayout(box("h", *[(idea, 1) for idea in pair], spacing=8))
        box(
            "v",
            "stretch",
            Label("What would you like to work on?", DISPLAY, "text", 600, wrap=True),
            Label(
                "Everything you write stays on this computer, and works with the network off.",
                READING,
                "muted",
                wrap=True,
            ),
            14,
            self.card,
            4,
            rows,
            4,
            self._drop,
            "stretch",
            spacing=8,
            margins=(0, 16, 0, 16),
            into=column,
        )
        holder = QWidget()
        row = box("h", margins=(24, 0, 24, 0), into=holder)
        row.addStretch(1)
        row.addWidget(column, 1000)
        row.addStretch(1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.viewport().setAutoFillBackground(False)
        area.setWidget(holder)
        holder.setAutoFillBackground(False)
        box("v", (area, 1), into=self)
        for button_, idea in zip(self._ideas, IDEAS, strict=True):
            button_.setProperty("starter", idea.starter)
            button_.clicked.connect(self._on_idea)
        self.card.open_requested.connect(self.open_requested)
        self.card.cancel_requested.connect(self.cancel_requested)

    def _make_drop(self) -> Panel:
        drop = Panel(None, "control", R_CARD, dash=True)
        browse = button("Browse…")
        browse.setAccessibleName("Browse for a model file or folder")
        browse.clicked.connect(self.open_requested)
        words = box(
            "v",
            Label("Drop a model file or folder here to add it", BODY, "text", 500, wrap=True),
            Label(
                "GGUF files and folders with a genai_config.json. Larger models write better.",
                SMALL,
                "muted",
                wrap=True,
            ),
            spacing=2,
        )
        box(
            "h",
            IconLabel("import", "muted", 22),
            (words, 1),
            browse,
            margins=(S3 + 2, 12, S3, 12),
            spacing=S3,
            into=drop,
        )
        return drop

    @Slot()
    def _on_idea(self) -> None:
        self.idea_chosen.emit(self.sender().property("starter"))

    def set_model(self, model: ModelState) -> None:
        self.card.set_model(model)
        self._drop.setVisible(model.importing is None and model.phase in ("ready", "loading"))

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter(self).fillRect(self.rect(), color("canvas"))
