"""Options under a name of one's own: a small JSON file each, to be read, changed or given away."""

import json
import logging
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.chat.exchange.writing import file_name
from app.chat.messages import Options
from app.chat.options import from_record, to_record

FORMAT = "inglenook-preset"
MOST_BYTES = 1_000_000
_NOT_KEPT = ("seed",)  # a seed belongs to an answer

log = logging.getLogger(__name__)


class PresetError(Exception):
    """A preset cannot be kept; a sentence for a person."""


@dataclass(frozen=True)
class OwnPreset:
    name: str
    options: Options
    path: Path


def own_presets(folder: Path) -> tuple[list[OwnPreset], list[str]]:
    """By name; and the names of files that are no presets, which are left as they are."""
    found, bad = [], []
    for path in _files(folder):
        preset = read_preset(path)
        if preset is None:
            bad.append(path.name)
        else:
            found.append(preset)
    return sorted(found, key=lambda preset: preset.name.casefold()), bad


def read_preset(path: Path) -> OwnPreset | None:
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        log.info("No preset: %s: %s", path.name, error)
        return None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return None
    name, values = document.get("name"), document.get("options")
    if not isinstance(name, str) or not name.strip() or not isinstance(values, dict):
        return None
    return OwnPreset(name.strip(), from_record(values), path)


def save_preset(folder: Path, name: str, options: Options) -> OwnPreset:
    """One of the same name is replaced."""
    name = " ".join(name.split())
    if not name:
        raise PresetError("A preset needs a name.")
    known = {preset.name.casefold(): preset.path for preset in own_presets(folder)[0]}
    path = known.get(name.casefold()) or _free(folder, name)
    plain = to_record(Options())
    values = {
        key: value
        for key, value in to_record(options).items()
        if key not in _NOT_KEPT and value != plain[key]
    }
    document = {"format": FORMAT, "name": name, "options": values}
    _write(path, document)
    return OwnPreset(name, from_record(values), path)


def delete_preset(preset: OwnPreset) -> None:
    try:
        preset.path.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise PresetError(f"“{preset.name}” could not be deleted: {reason}.") from error


def preset_like(presets: Sequence[OwnPreset], options: Options) -> OwnPreset | None:
    """The one that has these options, whatever the seed."""
    record = to_record(options)
    record |= {key: to_record(Options())[key] for key in _NOT_KEPT}
    return next((one for one in presets if to_record(one.options) == record), None)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.glob("*.json") if path.is_file())
    except OSError:
        return []


def _free(folder: Path, name: str) -> Path:
    path, number = folder / file_name(name, "json"), 2
    while path.exists():
        path, number = folder / file_name(f"{name} {number}", "json"), number + 1
    return path


def _write(path: Path, document: dict[str, Any]) -> None:
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(document, ensure_ascii=False, indent=1)
        part.write_text(text, encoding="utf-8", errors="replace")
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise PresetError(f"“{document['name']}” could not be saved: {reason}.") from error
