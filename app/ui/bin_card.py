"""Chats that were deleted: for thirty days they can be brought back."""

from datetime import datetime

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QListWidget, QListWidgetItem

from app.store.records import ConversationRecord
from app.ui import theme
from app.ui.chat_list import trail_of
from app.ui.controls import Label, Popover, box, button
from app.ui.theme import BODY, SMALL

Number = Qt.ItemDataRole.UserRole
MOST_ROWS = 8
FOR_GOOD, REALLY = "Delete for good", "Really, it can't be undone"


class BinCard(Popover):
    restore_requested = Signal(int)
    delete_requested = Signal(int)  # for good

    def __init__(self, deleted: list[ConversationRecord]) -> None:
        super().__init__(theme.u(380))
        self.setAccessibleName("Deleted chats")
        self.body.addWidget(Label("Deleted chats", BODY, "text", 600))
        words = "They are kept for 30 days." if deleted else "There are none."
        self.body.addWidget(Label(words, SMALL, "muted"))
        self.list = QListWidget()
        self.list.setAccessibleName("Deleted chats")
        self.restore = button("Restore", "primary", "undo")
        self.for_good = button(FOR_GOOD, "", "trash")
        now = datetime.now()
        for record in deleted:
            when = trail_of(datetime.fromtimestamp(record.deleted_at or 0), now)
            entry = QListWidgetItem(f"{record.title or 'New chat'}   {when}")
            entry.setData(Number, record.id)
            self.list.addItem(entry)
        if not deleted:
            return
        row = self.list.sizeHintForRow(0)
        self.list.setFixedHeight(row * min(len(deleted), MOST_ROWS) + 8)
        self.list.setCurrentRow(0)
        self.list.currentRowChanged.connect(self._on_row)
        self.list.itemActivated.connect(self._restore)
        self.restore.clicked.connect(self._restore)
        self.for_good.clicked.connect(self._delete)
        self.body.addWidget(self.list)
        self.body.addLayout(box("h", self.for_good, "stretch", self.restore, spacing=6))

    def _chosen(self) -> int | None:
        entry = self.list.currentItem()
        return None if entry is None else int(entry.data(Number))

    @Slot()
    def _on_row(self) -> None:
        self.for_good.setText(FOR_GOOD)

    @Slot()
    def _restore(self) -> None:
        if (chosen := self._chosen()) is not None:
            self.close()
            self.restore_requested.emit(chosen)

    @Slot()
    def _delete(self) -> None:
        """The first click asks, in the button itself."""
        chosen = self._chosen()
        if chosen is None:
            return
        if self.for_good.text() == FOR_GOOD:
            self.for_good.setText(REALLY)
            return
        self.list.takeItem(self.list.currentRow())
        self.for_good.setText(FOR_GOOD)
        self.for_good.setEnabled(self.list.count() > 0)
        self.restore.setEnabled(self.list.count() > 0)
        self.delete_requested.emit(chosen)
