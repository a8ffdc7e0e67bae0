"""Python's cyclic garbage is collected in the window's thread, and nowhere else.

Python collects in whatever thread happens to allocate. On the engine's thread that may end widgets
which stand in a cycle: Qt then stops their timers from the wrong thread, and the process dies of it
(seen with PySide6 6.11.3). So the automatic collection is off while the window is open, and the
event loop does it before it goes to sleep: no timer is needed, and nothing happens when idle.
"""

import gc

from PySide6.QtCore import QAbstractEventDispatcher, QObject, Slot


class Garbage(QObject):
    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._dispatcher = QAbstractEventDispatcher.instance()
        self._dispatcher.aboutToBlock.connect(self._collect)
        gc.disable()

    @Slot()
    def _collect(self) -> None:
        """The oldest generation that is due, by Python's own thresholds."""
        due = [
            generation
            for generation, (count, limit) in enumerate(
                zip(gc.get_count(), gc.get_threshold(), strict=True)
            )
            if 0 < limit < count
        ]
        if due:
            gc.collect(max(due))

    def settle(self) -> None:
        """What was imported stays for good: no later collection walks over it."""
        gc.freeze()

    def close(self) -> None:
        self._dispatcher.aboutToBlock.disconnect(self._collect)
        gc.unfreeze()
        gc.enable()
