"""The panel at the right: a tab for the options, one for the tokens of an answer."""

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QStackedWidget, QWidget

from app.chat.messages import Options
from app.ui.controls import HLine, IconButton, Segmented, box, button, painter
from app.ui.options_tab import OptionsTab
from app.ui.theme import H_BAR, S2, S3, color
from app.ui.tokens_tab import TokensTab

TABS = (("options", "Options", "options"), ("tokens", "Tokens", "tokens"))  # name, words, icon
NAMES = tuple(name for name, _, _ in TABS)


class Inspector(QWidget):
    options_changed = Signal(object)
    tab_changed = Signal(str)  # by the person, not by show_tab()
    hide_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("inspector")
        self.setMinimumWidth(320)
        self.options, self.tokens = OptionsTab(), TokensTab()
        self.options.options_changed.connect(self.options_changed)
        self.options.options_changed.connect(self._count)
        self.tabs = Segmented([(words, icon) for _, words, icon in TABS], 0, "Panel")
        self.tabs.changed.connect(self._on_tab)
        self._pages = QStackedWidget()
        self._pages.addWidget(self._options_page())
        self._pages.addWidget(self.tokens)
        box("v", self._head(), HLine(), (self._pages, 1), spacing=0, into=self)
        self._count()

    def _head(self) -> QWidget:
        head = QWidget()
        head.setFixedHeight(H_BAR)
        close = IconButton("close", "Hide the panel (Ctrl+I)", 30, 17)
        close.clicked.connect(self.hide_requested)
        box("h", (self.tabs, 1), close, margins=(S3, 0, S3, 0), spacing=6, into=head)
        return head

    def _options_page(self) -> QWidget:
        page, area = QWidget(), QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.viewport().setAutoFillBackground(False)
        area.setWidget(self.options)
        self.options.setAutoFillBackground(False)  # setWidget turns it on
        box("v", (area, 1), HLine(), self._foot(), spacing=0, into=page)
        return page

    def _foot(self) -> QWidget:
        foot = QWidget()
        explain = button("Explain", "flat", "help")
        explain.setCheckable(True)
        explain.setToolTip("Show what each option does")
        explain.toggled.connect(self.options.explain)
        self._reset_all = button("Reset all")
        self._reset_all.clicked.connect(self.options.reset_all)
        box("h", explain, "stretch", self._reset_all, margins=(S2, 9, S3, 9), spacing=6, into=foot)
        return foot

    # ---- tabs
    @property
    def tab(self) -> str:
        return NAMES[self._pages.currentIndex()]

    def show_tab(self, name: str) -> None:
        """One that this version does not know is left."""
        if name in NAMES:
            self._pages.setCurrentIndex(NAMES.index(name))
            self.tabs.set_current(NAMES.index(name))

    def choose_tab(self, name: str) -> None:
        """As a click on it."""
        if name != self.tab:
            self.show_tab(name)
            self.tab_changed.emit(name)

    @Slot(int)
    def _on_tab(self, index: int) -> None:
        self.choose_tab(NAMES[index])

    def focus_target(self) -> QWidget:
        """What takes the focus when the panel does."""
        return self.options.prompt if self.tab == "options" else self.tokens.focus_target()

    # ---- options
    @Slot(object)
    def set_options(self, options: Options) -> None:
        self.options.set_options(options)
        self._count()

    @Slot(object)
    def set_defaults(self, defaults: Options) -> None:
        self.options.set_defaults(defaults)
        self._count()

    @Slot()
    def _count(self) -> None:
        self._reset_all.setEnabled(self.options.changed_count > 0)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter(self).fillRect(self.rect(), color("chrome"))
