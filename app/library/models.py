"""Models on disk: what is there, whether it is whole, and how a new one gets in.

A model is a folder with genai_config.json; its facts are read from it each time, so a folder that
a person copies in or deletes by hand is a model, or none, at once. Folders whose names begin with
a dot are imports on their way.
"""

import json
import logging
import os
import shutil
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from app.convert import (
    FACTS_FILE,
    PART_SUFFIX,
    ConvertError,
    Precision,
    Progress,
    folder_name,
    gguf_name,
    import_gguf,
    new_folder,
    require_space,
    writing_to,
)
from app.library import exports
from app.library.errors import LibraryError
from app.library.graph_facts import graph_facts

STARTER_NAME = "SmolLM2-135M-Instruct"
CONFIG = "genai_config.json"
SUB_MODELS = ("decoder", "encoder", "embedding", "vision", "speech", "joiner", "draft", "mtp")
COPY_STEP_BYTES = 8 << 20
LEFTOVER_AGE_S = 3600  # since the last write: an import writes all the time

__all__ = ["STARTER_NAME", "LibraryError", "ModelFolder", "import_model", "inspect", "list_models"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelFolder:
    """`precision` is "int8", "int4", "fp16", "fp32" or, where the graph does not tell, empty."""

    path: Path
    name: str
    size_bytes: int
    type: str
    context_length: int
    precision: str


def list_models(models: Path) -> list[ModelFolder]:
    """The whole ones, by name. Folders may come and go meanwhile."""
    found = []
    for folder in _folders(models):
        try:
            found.append(inspect(folder))
        except (LibraryError, OSError) as error:
            _log.info("Not listed: %s: %s", folder, error)
    return sorted(found, key=lambda model: model.name.casefold())


@dataclass(frozen=True)
class BrokenFolder:
    """A folder among the models that is none; `reason` is a sentence."""

    path: Path
    name: str
    reason: str


def list_broken(models: Path) -> list[BrokenFolder]:
    """What lies among the models and cannot be used, by name."""
    found = []
    for folder in _folders(models):
        try:
            inspect(folder)
        except (LibraryError, OSError) as error:
            found.append(BrokenFolder(folder, folder.name, str(error)))
    return sorted(found, key=lambda broken: broken.name.casefold())


def rename(folder: Path, name: str) -> Path:
    """The same model under another name; LibraryError where it cannot have it."""
    wanted = folder_name(name.strip())
    target = folder.with_name(wanted)
    if target == folder:
        return folder
    if not name.strip():
        raise LibraryError("A model needs a name.")
    is_other = target.exists() and not target.samefile(folder)  # not only its letters' case
    if is_other:
        raise LibraryError(f"There is a model called “{wanted}” already.")
    try:
        folder.rename(target)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LibraryError(f"“{folder.name}” could not be renamed: {reason}.") from error
    return target


def origin(folder: Path) -> dict[str, Any]:
    """What an import noted about where the model comes from; empty where nothing was."""
    try:
        facts = json.loads((folder / FACTS_FILE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def licence_file(folder: Path) -> Path | None:
    for name in ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "USE_POLICY.md", "NOTICE"):
        if (folder / name).is_file():
            return folder / name
    return None


def inspect(path: Path) -> ModelFolder:
    """`path` is a model folder or an .onnx file in it; LibraryError names what is missing."""
    folder = path.parent if path.suffix == ".onnx" else path
    if not os.path.isdir(folder):  # Path's own raises for a name that is too long
        raise LibraryError(f"The model folder “{folder.name}” is not there (any more).")
    try:
        return _inspected(folder)
    except OSError as error:  # deleted or locked between two looks at it
        reason = error.strerror or str(error)
        raise LibraryError(f"The model “{folder.name}” could not be read: {reason}.") from error


def import_model(
    source: Path, models: Path, *, precision: Precision = "stored"
) -> Generator[Progress, None, Path]:
    """Brings a GGUF file or a model folder into the library; the value is the new folder's path.

    Closing the generator cancels and leaves nothing. Every refusal is a LibraryError.
    """
    _sweep(models)
    try:
        if source.is_dir() or source.suffix == ".onnx":
            folder = source.parent if source.suffix == ".onnx" else source
            if not (folder / CONFIG).is_file() and exports.holds_export(source):
                return (yield from _adopt(exports.find_export(source), models))
            return (yield from _copy(source, models))
        name = gguf_name(source) + ("" if precision == "stored" else f"-{precision}")
        destination = _free(models, name)
        yield from import_gguf(source, destination, precision=precision)
        return destination
    except LibraryError:
        raise
    except ConvertError as error:
        raise LibraryError(str(error)) from error


# ---- looking at a folder


def _folders(models: Path) -> list[Path]:
    try:
        return [p for p in models.iterdir() if p.is_dir() and not p.name.startswith(".")]
    except OSError:
        return []


def _inspected(folder: Path) -> ModelFolder:
    model = _model_section(folder)
    graphs = _graph_names(model)
    if not graphs:
        raise LibraryError(f"“{CONFIG}” in “{folder.name}” names no .onnx file.")
    tokenizer = model.get("tokenizer_dir") or "."
    _require(folder, f"{tokenizer}/tokenizer.json" if tokenizer != "." else "tokenizer.json")
    precision = ""
    for name in graphs:
        facts = graph_facts(_require(folder, name))
        precision = precision or facts.precision
        for data, size in facts.data_bytes.items():
            beside = str(PurePosixPath(name).parent / data)
            if _require(folder, beside).stat().st_size < size:
                raise LibraryError(
                    f"“{data}” in “{folder.name}” is cut: import or copy the model again."
                )
    context = model.get("context_length")
    return ModelFolder(
        path=folder,
        name=folder.name,
        size_bytes=sum(file.stat().st_size for file in _files(folder)),
        type=str(model.get("type", "")),
        context_length=context if isinstance(context, int) else 0,
        precision=precision,
    )


def _model_section(folder: Path) -> dict[str, Any]:
    path = _require(folder, CONFIG)
    try:
        config = json.loads(path.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise LibraryError(f"“{CONFIG}” in “{folder.name}” is damaged.") from error
    model = config.get("model") if isinstance(config, dict) else None
    if not isinstance(model, dict):
        raise LibraryError(f"“{CONFIG}” in “{folder.name}” describes no model.")
    return model


def _graph_names(model: dict[str, Any]) -> list[str]:
    """The .onnx files that the config names, the decoder's first, pipelines included."""
    names = []
    for key in SUB_MODELS:
        section = model.get(key)
        if not isinstance(section, dict):
            continue
        names.append(section.get("filename"))
        stages = section.get("pipeline") or []
        for group in stages if isinstance(stages, list) else [stages]:
            if isinstance(group, dict):
                names += [s.get("filename") for s in group.values() if isinstance(s, dict)]
    return list(dict.fromkeys(n for n in names if isinstance(n, str) and n))


def _require(folder: Path, name: str) -> Path:
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts:
        raise LibraryError(f"“{folder.name}” names “{name}”, a file outside of itself.")
    path = folder / relative
    if not path.is_file():
        raise LibraryError(f"“{folder.name}” is incomplete: “{name}” is missing.")
    return path


def _files(folder: Path) -> Iterator[Path]:
    """Every file of a model, without what version control and downloads keep in dot folders.

    A link to a folder is not followed: it may lead back, or out into the whole disk.
    """
    for path in folder.iterdir():
        if path.is_file():
            yield path
        elif path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
            yield from _files(path)


# ---- bringing one in


def _free(models: Path, name: str) -> Path:
    """The name, or the name with the first number that is free."""
    path, number = models / name, 2
    while path.exists():
        path, number = models / f"{name} {number}", number + 1
    return path


def _copy(source: Path, models: Path) -> Generator[Progress, None, Path]:
    model = inspect(source)
    if model.path.resolve().parent == models.resolve():
        return model.path  # it is in the library already
    destination = _free(models, folder_name(model.path.resolve().name))
    require_space(models, model.size_bytes)
    text = f"Copying {model.name}"
    done = 0
    with new_folder(destination) as folder, writing_to(destination):
        for file in list(_files(model.path)):
            target = folder / file.relative_to(model.path)
            target.parent.mkdir(parents=True, exist_ok=True)
            for size in _copy_file(file, target):
                done += size
                yield Progress(done, model.size_bytes, text)
    return destination


def _adopt(export: exports.Export, models: Path) -> Generator[Progress, None, Path]:
    """All files side by side, with a genai_config.json of what they say."""
    name = export.folder.resolve().name
    destination = _free(models, folder_name(name))
    total = export.size_bytes
    require_space(models, total)
    text = f"Copying {name}, the form {export.graph.name}"
    done = 0
    with new_folder(destination) as folder, writing_to(destination):
        for file in export.files:
            for size in _copy_file(file, folder / file.name):
                done += size
                yield Progress(done, total, text)
        (folder / CONFIG).write_text(exports.written(export.config), encoding="utf-8")
        inspect(folder)
    return destination


def _copy_file(source: Path, target: Path) -> Iterator[int]:
    with source.open("rb") as read, target.open("wb") as write:
        while piece := read.read(COPY_STEP_BYTES):
            write.write(piece)
            yield len(piece)


def _sweep(models: Path) -> None:
    """Removes what an import that was killed left, once no import can still be at it."""
    try:
        leftovers = list(models.glob(f".*{PART_SUFFIX}"))
    except OSError:
        return
    for leftover in leftovers:
        try:
            written_at = max(path.stat().st_mtime for path in [leftover, *leftover.rglob("*")])
        except OSError:  # it is gone meanwhile, or becomes a model right now
            continue
        if time.time() - written_at > LEFTOVER_AGE_S:
            shutil.rmtree(leftover, ignore_errors=True)
