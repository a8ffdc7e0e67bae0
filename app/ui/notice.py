"""The card of a notice: what happened, what it means, and the ways out."""

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget

from app.ui.controls import Flow, IconLabel, Label, Panel, box, button, fill_round, painter
from app.ui.items import Notice
from app.ui.theme import BODY, R_CARD, S3, SMALL, color

ICONS = {"danger": "error", "warning": "warning", "info": "info"}
SOFT = {"danger": "danger_soft", "warning": "warning_soft", "info": "accent_soft"}
ACCENT = {"danger": "danger", "warning": "warning", "info": "accent"}


class NoticeCard(Panel):
    """`action` carries the name of the way that was chosen; `resized` says that details came or
    went, so that a parent without a layout can place it anew."""

    action = Signal(str)
    resized = Signal()

    def __init__(self, notice: Notice) -> None:
        super().__init__(SOFT[notice.tone], None, R_CARD)
        self._tone = ACCENT[notice.tone]
        self.setAccessibleName(f"{notice.title}. {notice.text}")
        self._details = Label(notice.details, SMALL, "muted", wrap=True)
        self._details.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._details.hide()
        body = box(
            "v",
            Label(notice.title, BODY + 1, "text", 600, wrap=True),
            Label(notice.text, BODY, "text", wrap=True) if notice.text else None,
            self._details,
            spacing=3,
        )
        if notice.ways or notice.details:
            body.addSpacing(8)
            body.addWidget(self._ways(notice))
        icon = IconLabel(ICONS[notice.tone], self._tone, 20)
        self._row = box("h", icon, margins=(S3 + 4, S3, S3, S3), spacing=10, into=self)
        self._row.setAlignment(icon, Qt.AlignmentFlag.AlignTop)
        self._row.addLayout(body, 1)

    def _ways(self, notice: Notice) -> QWidget:
        holder = QWidget()
        flow = Flow(6)
        flow.setContentsMargins(0, 0, 0, 0)
        holder.setLayout(flow)
        policy = holder.sizePolicy()
        policy.setHeightForWidth(True)
        holder.setSizePolicy(policy)
        for i, way in enumerate(notice.ways):
            choice = button(way.text, "primary" if i == 0 else "")
            choice.setProperty("action", way.action)
            choice.clicked.connect(self._chosen)
            flow.addWidget(choice)
        if notice.details:
            self._toggle = button("Show details", "flat")
            self._toggle.clicked.connect(self._show_details)
            flow.addWidget(self._toggle)
        return holder

    def _chosen(self) -> None:
        self.action.emit(self.sender().property("action"))

    def _show_details(self) -> None:
        self._details.setVisible(self._details.isHidden())
        self._toggle.setText("Show details" if self._details.isHidden() else "Hide details")
        self._toggle.updateGeometry()
        self._row.activate()
        self.resized.emit()

    def height_for(self, width: int) -> int:
        self._row.activate()
        return self._row.heightForWidth(width)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        bar = QRectF(0, 8, 3, self.height() - 16)
        fill_round(painter(self), bar, 1.5, color(self._tone))
