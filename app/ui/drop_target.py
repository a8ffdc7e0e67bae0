"""Files that are dragged over the window: the veil says what would happen, a drop does it."""

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QWidget

from app.ui.drop_veil import DropVeil
from app.ui.drops import verdict


class DropTarget(QObject):
    """Watches `window`, covers `page`. `is_open` False: nothing is taken now."""

    dropped = Signal(str)  # a model
    chats_dropped = Signal(str)  # a file of chats
    attached = Signal(list)  # files for the message

    def __init__(self, window: QWidget, page: QWidget) -> None:
        super().__init__(window)
        self._page = page
        self.veil = DropVeil(page)
        self.is_open = True
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QDragEnterEvent):
            return self._enter(event)
        if event.type() == QEvent.Type.DragLeave:
            self.veil.hide()
        elif isinstance(event, QDropEvent) and event.type() == QEvent.Type.Drop:
            return self._drop(event)
        return False

    def _enter(self, event: QDragEnterEvent) -> bool:
        files = _files(event)
        if not files or not self.is_open:
            return False
        found = verdict(files)
        is_welcome = found.path is not None or bool(found.files)
        self.veil.set_words(found.title, found.text, is_welcome=is_welcome)
        self.veil.setGeometry(self._page.rect())
        self.veil.show()
        self.veil.raise_()
        event.acceptProposedAction()
        return True

    def _drop(self, event: QDropEvent) -> bool:
        self.veil.hide()
        found = verdict(_files(event))
        if found.path is not None:
            event.acceptProposedAction()
            (self.chats_dropped if found.is_chats else self.dropped).emit(found.path)
        elif found.files:
            event.acceptProposedAction()
            self.attached.emit(list(found.files))
        return True


def _files(event: QDropEvent) -> list[str]:
    return [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]
