"""The toast after a delete: one at a time, at the place where the chat was."""

from PySide6.QtCore import QObject, QPoint, Signal, Slot
from PySide6.QtWidgets import QWidget

from app.ui.toast import Toast


class UndoToast(QObject):
    """`above` is the widget that the toast stands on, where the deed was done; out of sight, it
    stands at the bottom."""

    undone = Signal()

    def __init__(self, window: QWidget, above: QWidget) -> None:
        super().__init__(window)
        self._window, self._above = window, above
        self._usual = above
        self.toast: Toast | None = None

    def show(self, text: str, above: QWidget | None = None) -> None:
        self.dismiss()
        self._above = above or self._usual
        toast = self.toast = Toast(text, "Undo")
        toast.acted.connect(self.undone)
        toast.closed.connect(self._on_closed)
        toast.setParent(self._window)
        toast.adjustSize()
        self.place()
        toast.show()
        toast.raise_()

    def dismiss(self) -> bool:
        """Whether there was one."""
        if self.toast is None:
            return False
        self.toast.dismiss()
        return True

    @Slot()
    def place(self) -> None:
        if self.toast is None:
            return
        is_seen = self._above.isVisible()
        left, bottom = 8, self._window.height() - 96
        if is_seen:
            corner = self._above.mapTo(self._window, QPoint(0, 0))
            left, bottom = max(0, corner.x() - 8), corner.y()
        self.toast.move(left, bottom - self.toast.height() + 4)

    @Slot()
    def _on_closed(self) -> None:
        toast = self.sender()
        if toast is self.toast:
            self.toast = None
        if isinstance(toast, QWidget):
            toast.hide()
            toast.deleteLater()
