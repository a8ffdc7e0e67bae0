"""The tab of tokens: figures, chart, the flow of tokens; or why there are none."""

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.chat.messages import TokenView
from app.ui.controls import HLine, IconLabel, Label, Meter, Switch, box, button
from app.ui.theme import BODY, S3, S4, SMALL, TITLE
from app.ui.token_chart import DoubtChart, Legend
from app.ui.token_flow import TokenFlow
from app.ui.token_watch import TokensState
from app.ui.token_words import Figures

KEYS = (
    "Arrow keys move between tokens, U goes to the next unsure one, Enter shows the alternatives."
)


class Figure(QWidget):
    """A number and what it counts."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what
        self.value = Label("0", TITLE, "text", 600)
        box("v", self.value, Label(what, SMALL, "muted"), spacing=0, into=self)

    def set_value(self, value: str) -> None:
        self.value.setText(value)
        self.value.setAccessibleName(f"{value} {self._what}")


class StatePage(QWidget):
    """Why there are no tokens, how far reading is, and what can be done."""

    acted = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._action = ""
        self.words = Label("", BODY, "muted", wrap=True)
        self.words.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.meter = Meter(0.0, width=None)
        self.way = button("Cancel")
        self.way.clicked.connect(self._on_way)
        icon = IconLabel("tokens", "muted", 28)
        box(
            "v",
            box("h", "stretch", icon, "stretch"),
            self.words,
            self.meter,
            box("h", "stretch", self.way, "stretch"),
            "stretch",
            margins=(S4, 48, S4, S4),
            spacing=S3,
            into=self,
        )

    def set_state(self, state: TokensState) -> None:
        is_reading = state.phase == "reading"
        words, self._action = ("Cancel", "cancel") if is_reading else state.way or ("", "")
        self.words.setText(state.words)
        self.words.set_role("danger" if state.phase == "failed" else "muted")
        self.meter.setVisible(is_reading)
        self.meter.set_share(state.share)
        self.meter.setAccessibleName(state.words if is_reading else "")
        self.way.setText(words)
        self.way.updateGeometry()
        self.way.setVisible(bool(words))

    @Slot()
    def _on_way(self) -> None:
        self.acted.emit(self._action)


class TokensTab(QWidget):
    acted = Signal(str)  # "cancel", "look-again", "choose-model"
    colours_chosen = Signal(bool)  # of the answer in the chat

    def __init__(self) -> None:
        super().__init__()
        self._figures = Figures()
        self.count, self.perplexity = Figure("tokens"), Figure("perplexity")
        self.unsure = Figure("unsure, under 40 %")
        self.chart, self.legend, self.flow = DoubtChart(), Legend(), TokenFlow()
        self.colours = Switch(False, "Colour the answer in the chat too")
        self.colours.setObjectName("colour-tokens")
        self.page = StatePage()
        self._pages = QStackedWidget()
        self._pages.addWidget(self.page)
        self._pages.addWidget(self._answer_page())
        box("v", self._pages, spacing=0, into=self)
        self.page.acted.connect(self.acted)
        self.colours.toggled.connect(self.colours_chosen)
        self.chart.token_clicked.connect(self._on_bar)
        self.flow.moved.connect(self.chart.set_current)
        self.set_state(TokensState())

    def _answer_page(self) -> QWidget:
        page = QWidget()
        figures = box("h", self.count, self.perplexity, self.unsure, "stretch", spacing=24)
        top = box("v", figures, self.chart, self.legend, HLine(), margins=(S4, S3, S4, 0))
        flow = box("h", self.flow, margins=(S4 - 4, 4, 4, 4))
        switch = box("h", (Label("Colour the answer in the chat too"), 1), self.colours)
        keys = Label(KEYS, SMALL, "muted", wrap=True)
        foot = box("v", HLine(), switch, keys, margins=(S4, 0, S4, S3), spacing=6)
        top.setSpacing(S3)
        box("v", top, (flow, 1), foot, spacing=0, into=page)
        return page

    def summary(self) -> str:
        """For screen readers, once the tokens are there."""
        figures = (self.count, self.perplexity, self.unsure)
        return ", ".join(figure.value.accessibleName() for figure in figures)

    @Slot(object)
    def set_state(self, state: TokensState) -> None:
        self.is_reading = state.phase == "reading"
        self.page.set_state(state)
        self._pages.setCurrentIndex(1 if state.has_tokens else 0)

    @Slot(list)
    def set_tokens(self, tokens: list[TokenView]) -> None:
        self._figures = Figures()
        self.flow.set_tokens(tokens)
        self.chart.set_chances([token.probability for token in tokens])
        self._count(tokens)

    @Slot(list)
    def add_tokens(self, tokens: list[TokenView]) -> None:
        self.flow.append(tokens)
        self.chart.append([token.probability for token in tokens])
        self._count(tokens)

    def _count(self, tokens: list[TokenView]) -> None:
        for token in tokens:
            self._figures.add(token)
        self.count.set_value(f"{self._figures.tokens:,}")
        self.perplexity.set_value(f"{self._figures.perplexity:.2f}")
        self.unsure.set_value(f"{self._figures.unsure:,}")

    @Slot(int)
    def _on_bar(self, token: int) -> None:
        self.flow.go_to(token)
        self.flow.setFocus(Qt.FocusReason.OtherFocusReason)

    def focus_target(self) -> QWidget:
        """What takes the focus when the tab does."""
        if self._pages.currentIndex() == 1:
            return self.flow
        return self.page.way if self.page.way.isVisibleTo(self) else self

    def restyle(self) -> None:
        self.flow.restyle()
