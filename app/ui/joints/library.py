"""The page of models: opened, filled, and what is done with a model on it."""

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QFile, QTimer, QUrl, Slot
from PySide6.QtGui import QDesktopServices

from app.ui.chat_state import ChatState, short_count
from app.ui.joints.joint import Joint
from app.ui.library_page import Device, LibraryPage
from app.ui.library_rows import LibraryEntry
from app.ui.model_controller import size_words

if TYPE_CHECKING:
    from app.library.memory import Memory
    from app.library.models import ModelFolder
    from app.ui.main_window import MainWindow

log = logging.getLogger(__name__)

LOOK_AGAIN_MS = 3000  # memory changes; only while the page is seen
FITS = {"fits": "Fits", "tight": "Tight, close other apps", "too large": "Too large now"}
TONES = {"fits": "accent", "tight": "warning", "too large": "danger"}


class LibraryJoint(Joint):
    def __init__(self, window: "MainWindow") -> None:
        super().__init__(window)
        self.page = page = LibraryPage()
        window.center.addWidget(page)
        window.actions_["library"].triggered.connect(self.show)
        window.sidebar.models_requested.connect(window.actions_["library"].trigger)
        page.import_requested.connect(window.actions_["open_model"].trigger)
        page.closed.connect(self.close)
        page.used.connect(self._use)
        page.acted.connect(self._act)
        page.renamed.connect(self._rename)
        page.checked.connect(self.fill)
        page.folder_requested.connect(self._open_folder)
        page.import_cancelled.connect(self._cancel)
        self._timer = QTimer(self, interval=LOOK_AGAIN_MS)
        self._timer.timeout.connect(self._look_at_memory)

    def follow(self, old: ChatState, new: ChatState) -> None:
        self.window.actions_.enable({"library": new.is_store_open})
        if not self.is_shown:
            return
        if new.model != old.model:
            self.page.set_importing(new.model.importing)
            if _listed(new) != _listed(old):
                self.fill()
        if new.conversation_id != old.conversation_id:
            self.close()

    @property
    def is_shown(self) -> bool:
        return self.window.center.currentWidget() is self.page

    @Slot()
    def show(self) -> None:
        if self.is_shown:
            self.close()
            return
        if self.models is None:
            return
        self.page.set_problem("")
        self.fill()
        self.page.set_importing(self.window.state.model.importing)
        self.window.center.setCurrentWidget(self.page)
        self.page.finder.setFocus()
        self._timer.start()

    @Slot()
    def close(self) -> None:
        self._timer.stop()
        self.window.center.setCurrentWidget(self.window.page)
        self.window.page.composer.field.setFocus()

    def restyle(self) -> None:
        self.page.restyle()

    # ---- what is shown
    @Slot()
    def fill(self) -> None:
        from app.library.memory import memory_now
        from app.library.models import list_broken

        if self.models is None:
            return
        memory = memory_now()
        folders = self.models.folders()
        entries = [self._entry(folder, memory) for folder in folders]
        broken = [(str(b.path), b.name, b.reason) for b in list_broken(self.models.place)]
        count = len(folders)
        size = size_words(sum(folder.size_bytes for folder in folders))
        total = (
            f"{count} model{'s' * (count != 1)}, {size} in {self.models.place}. "
            "Imported models are copied, and removed ones go to the wastebasket."
        )
        self.page.set_models(entries, broken, total)
        self.window.sidebar.set_model_count(count)
        self._show_memory(memory)

    def _entry(self, folder: "ModelFolder", memory: "Memory") -> LibraryEntry:
        from app.library.memory import fit_of, memory_of
        from app.library.models import licence_file, origin

        state = self.window.state.model
        needed = memory_of(folder)
        fit = fit_of(needed, memory)
        facts = origin(folder.path)
        source = facts.get("source")
        is_current = state.path == str(folder.path) and state.phase in ("ready", "loading")
        return LibraryEntry(
            path=str(folder.path),
            name=folder.name,
            source=f"Text, from {source}" if isinstance(source, str) and source else "Text",
            family=folder.type.capitalize(),
            size=size_words(folder.size_bytes),
            weights=folder.precision.upper(),
            context=short_count(folder.context_length) if folder.context_length else "",
            memory=size_words(needed),
            share=needed / max(1, memory.free_bytes + memory.own_bytes // 2),
            fit="In use" if is_current else FITS[fit],
            tone="accent" if is_current else TONES[fit],
            is_current=is_current,
            has_licence=licence_file(folder.path) is not None,
        )

    @Slot()
    def _look_at_memory(self) -> None:
        from app.library.memory import memory_now

        if self.is_shown and self.page.isVisible():
            self._show_memory(memory_now())

    def _show_memory(self, memory: "Memory") -> None:
        count = os.cpu_count() or 1
        own = memory.own_bytes / memory.total_bytes
        others = max(0.0, 1 - memory.free_bytes / memory.total_bytes - own)
        words = (
            f"{size_words(memory.free_bytes)} of {size_words(memory.total_bytes)} free. "
            f"This app uses {size_words(memory.own_bytes)}."
        )
        name = f"This computer, {count} core{'s' * (count != 1)}"
        self.page.set_device(Device(name, "CPU", words, own, others))

    # ---- what is done
    @Slot(str)
    def _use(self, path: str) -> None:
        if self.models is not None:
            self.models.load(path)

    @Slot()
    def _cancel(self) -> None:
        if self.models is not None:
            self.models.cancel_import()

    @Slot()
    def _open_folder(self) -> None:
        if self.models is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self.models.place)))

    @Slot(str, str)
    def _act(self, path: str, what: str) -> None:
        from app.library.models import licence_file

        folder = Path(path)
        if what == "remove":
            self._remove(folder)
        elif what == "licence":
            found = licence_file(folder)
            if found is not None:
                QDesktopServices.openUrl(QUrl.fromLocalFile(str(found)))
        else:
            QDesktopServices.openUrl(QUrl.fromLocalFile(path))

    def _remove(self, folder: Path) -> None:
        """Only what lies among the models, and never the one that writes."""
        if self.models is None or folder.parent != self.models.place:
            return
        if self.window.state.model.path == str(folder):
            self._tell("It is in use", "Choose another model first, then remove this one.")
            return
        if QFile.moveToTrash(str(folder)):
            self.window.announce(f"{folder.name} is in the wastebasket")
        else:
            log.warning("%s could not be moved to the wastebasket", folder)
            self._tell(
                f"{folder.name} was not removed",
                "The system has no wastebasket for it: delete it by hand, Open folder shows it.",
            )
        self.fill()

    @Slot(str, str)
    def _rename(self, path: str, name: str) -> None:
        from app.library.errors import LibraryError
        from app.library.models import rename

        try:
            made = rename(Path(path), name)
        except LibraryError as error:
            self._tell("The name stays as it was", str(error))
        else:
            self.window.announce(f"Renamed to {made.name}")
        self.fill()

    def _tell(self, title: str, text: str) -> None:
        """On the page of the chat, and at once for who hears."""
        self.window.announce(f"{title}. {text}")
        self.page.set_problem(f"{title}. {text}")


def _listed(state: ChatState) -> tuple[object, ...]:
    """What a row would show otherwise."""
    model = state.model
    return model.path, model.phase, model.importing is None
