"""The panel at the right: its head, the options in the middle, and what acts on all of them."""

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from app.chat.messages import Options
from app.ui.controls import HLine, IconButton, IconLabel, Label, box, button, painter
from app.ui.options_tab import OptionsTab
from app.ui.theme import BODY, H_BAR, S2, S3, color


class Inspector(QWidget):
    """Has one tab today; its head becomes a row of tabs when there are more."""

    options_changed = Signal(object)
    hide_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("inspector")
        self.setMinimumWidth(320)
        self.options = OptionsTab()
        self.options.options_changed.connect(self.options_changed)
        self.options.options_changed.connect(self._count)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.viewport().setAutoFillBackground(False)
        area.setWidget(self.options)
        self.options.setAutoFillBackground(False)  # setWidget turns it on
        box("v", self._head(), HLine(), (area, 1), HLine(), self._foot(), spacing=0, into=self)
        self._count()

    def _head(self) -> QWidget:
        head = QWidget()
        head.setFixedHeight(H_BAR)
        close = IconButton("close", "Hide options (Ctrl+I)", 30, 17)
        close.clicked.connect(self.hide_requested)
        title = Label("Options", BODY + 1, "text", 600)
        box(
            "h",
            IconLabel("options", "accent", 18),
            title,
            "stretch",
            close,
            margins=(20, 0, S3, 0),
            spacing=8,
            into=head,
        )
        return head

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
