"""Which model answers: the list of folders, loading, and taking in files from elsewhere.

Joins app.library, the engine and the window; knows no widget. Only the newest Load counts: what
an older one still reports is passed over.
"""

import itertools
import logging
import os.path
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal, Slot

from app.chat.events import Failed, Finished, Load, Loaded
from app.chat.messages import ModelInfo
from app.ui import notices
from app.ui.answer_writer import Engine
from app.ui.chat_state import ImportState, ModelState, short_count
from app.ui.drops import CONFIG
from app.ui.job import Job
from app.ui.model_menu import ModelEntry

if TYPE_CHECKING:
    from app.convert.progress import Progress
    from app.library.models import ModelFolder

log = logging.getLogger(__name__)


class ModelController(QObject):
    state_changed = Signal(object)  # ModelState
    notice_raised = Signal(object)  # Notice
    loaded = Signal(str)  # the path, worth remembering
    about_to_load = Signal()  # an answer that is being written ends here
    announced = Signal(str)

    def __init__(
        self,
        models: Path,
        engine: Engine,
        request_ids: "itertools.count[int]",
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._models, self._engine, self._request_ids = models, engine, request_ids
        self.threads = 0  # for the next Load; 0 leaves the choice to the engine
        self._load_id = 0
        self._wanted = ""  # the folder of the newest Load
        self._job: Job | None = None
        self._state = ModelState()

    @property
    def state(self) -> ModelState:
        return self._state

    def info(self) -> ModelInfo | None:
        """The model that can be asked now. Any thread may call: the state is one value."""
        state = self._state
        if state.phase != "ready":
            return None
        return ModelInfo(state.path, state.name, state.device, state.context_length, state.defaults)

    @property
    def place(self) -> Path:
        """The folder of all models."""
        return self._models

    def entries(self) -> list[ModelEntry]:
        """Rows of the model menu; the one in use is among them also when its folder is gone."""
        current = self._state.path if self._state.phase in ("ready", "loading") else ""
        found = [
            ModelEntry(str(folder.path), folder.name, _facts(folder), str(folder.path) == current)
            for folder in self.folders()
        ]
        if current and not any(entry.is_current for entry in found):
            gone = "" if os.path.isdir(current) else "Its folder was moved or deleted"
            found.insert(0, ModelEntry(current, self._state.name, gone or current, True))
        return found

    def folders(self) -> "list[ModelFolder]":
        """What is in the models folder, read anew."""
        from app.library.models import list_models

        return list_models(self._models)

    def begin(self, last_model: str) -> None:
        """Loads the model used last, else the starter model, else the first there is."""
        from app.library.models import STARTER_NAME

        found = self.folders()
        paths = {str(folder.path): folder for folder in found}
        if last_model in paths or os.path.isdir(last_model):  # Path's own raises for long names
            self.load(last_model)
            return
        ordered = sorted(found, key=lambda folder: folder.name != STARTER_NAME)
        if ordered:
            self.load(str(ordered[0].path))
        if last_model:
            self.notice_raised.emit(
                notices.model_is_gone(last_model, ordered[0].name if ordered else "")
            )

    @Slot(str)
    def load(self, path: str) -> None:
        self._load(path, is_needed=False)

    def _load(self, path: str, *, is_needed: bool, may_interrupt: bool = True) -> None:
        """`may_interrupt`: a person asked just now, so an answer that is written ends here."""
        from app.library.models import inspect

        try:
            folder = inspect(Path(path))
        except Exception as error:
            name = Path(path).name
            self._wanted = path
            if self._state.phase in ("none", "failed"):
                self._set(phase="failed", name=name, path=path)
            self.notice_raised.emit(notices.load_failed(name, notices.sentence(error)))
            return
        if not is_needed and self._state.phase == "ready" and self._state.path == str(folder.path):
            return
        if may_interrupt:
            self.about_to_load.emit()
        if self._state.phase == "loading":
            self._engine.stop()
        self._wanted = str(folder.path)
        self._load_id = next(self._request_ids)
        self._set(phase="loading", name=folder.name, path=self._wanted, device="")
        self._engine.submit(Load(self._load_id, self._wanted, self.threads))

    @Slot()
    def reload(self) -> None:
        if self._wanted:
            self._load(self._wanted, is_needed=True)

    @Slot(str)
    def open(self, path: str) -> None:
        """A file or folder that a person chose or dropped: copied or converted, then loaded."""
        from app.library.models import import_model

        source = Path(path)
        is_graph = source.suffix == ".onnx" and (source.parent / CONFIG).is_file()
        if is_graph or source.name == CONFIG:
            source = source.parent
        if self._is_ours(source):
            self.load(str(source))
            return
        if self._job is not None:
            self.notice_raised.emit(notices.import_busy())
            return
        self._job = Job(lambda: import_model(source, self._models), self)
        self._job.progress.connect(self._on_progress)
        self._job.done.connect(self._on_imported)
        self._job.failed.connect(self._on_import_failed)
        self._job.cancelled.connect(self._on_cancelled)
        self._set(importing=ImportState(source.name, "Looking at the file"))
        self._job.start()

    @Slot()
    def cancel_import(self) -> None:
        if self._job is not None and self._state.importing is not None:
            self._job.cancel()
            self._set(importing=replace(self._state.importing, is_cancelling=True))

    def close(self) -> None:
        """Ends an import that is running; it leaves nothing behind."""
        if self._job is not None:
            self._job.cancel()
            self._job.wait()

    def _is_ours(self, source: Path) -> bool:
        return source.is_dir() and source.resolve().parent == self._models.resolve()

    # ---- what comes back
    @Slot(list)
    def on_events(self, events: list[object]) -> None:
        for event in events:
            if getattr(event, "request_id", None) != self._load_id:
                continue
            if isinstance(event, Loaded):
                self._on_loaded(event)
            elif isinstance(event, Failed):
                self._on_load_failed(event)
            elif isinstance(event, Finished) and self._state.phase == "loading":
                self._set(phase="none", name="", path="")

    def _on_loaded(self, event: Loaded) -> None:
        model = event.model
        self._set(
            phase="ready",
            name=model.name,
            path=self._wanted,
            device=model.device,
            context_length=model.context_length,
            defaults=model.defaults,
        )
        self.loaded.emit(self._wanted)
        self.announced.emit(f"{model.name} is ready")

    def _on_load_failed(self, event: Failed) -> None:
        log.warning("%s did not load (%s): %s", self._wanted, event.kind, event.message)
        name = self._state.name
        self._set(phase="failed", device="", context_length=0)
        self.notice_raised.emit(notices.load_failed(name, event.message))

    @Slot(object)
    def _on_progress(self, progress: "Progress") -> None:
        if self._state.importing is not None:
            self._set(
                importing=replace(self._state.importing, text=progress.text, share=progress.share)
            )

    @Slot(object)
    def _on_imported(self, path: Path) -> None:
        # Loading first: between the two nobody must think that there is no model.
        self._load(str(path), is_needed=False, may_interrupt=False)
        self._end_import()

    @Slot(str)
    def _on_import_failed(self, message: str) -> None:
        name = self._state.importing.name if self._state.importing else "The model"
        self.notice_raised.emit(notices.import_failed(name, message))
        self._fall_back()
        self._end_import()

    @Slot()
    def _on_cancelled(self) -> None:
        self._fall_back()
        self._end_import()

    def _fall_back(self) -> None:
        """The app was started with a file that did not become a model."""
        if self._state.phase == "none":
            self.begin("")

    def _end_import(self) -> None:
        job, self._job = self._job, None
        if job is not None:
            job.deleteLater()
        self._set(importing=None)

    def _set(self, **changes: Any) -> None:
        state = replace(self._state, **changes)
        if state != self._state:
            self._state = state
            self.state_changed.emit(state)


def _facts(folder: "ModelFolder") -> str:
    facts = [f"{short_count(folder.context_length)} context"] if folder.context_length else []
    facts.append(size_words(folder.size_bytes))
    if folder.precision:
        facts.append(folder.precision)
    return ", ".join(facts)


def size_words(size_bytes: int) -> str:
    if size_bytes < 1e9:
        return f"{max(1, round(size_bytes / 1e6))} MB"
    return f"{size_bytes / 1e9:.1f} GB"
