"""Settings of a person: one line each, with name, type, default, label and help.

The settings dialog is generated from the fields. A file that cannot be read means the defaults,
never a stop: nothing here is worth more than a start of the app.
"""

import json
import logging
import os
import secrets
import shutil
from contextlib import suppress
from dataclasses import Field, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

TOKEN_BYTES = 24


def _setting(default: Any, label: str = "", help: str = "", **more: Any) -> Any:
    """A field with what the dialog needs; without a label it is remembered, not offered.

    `choices` maps values to their words, `between` gives the lowest and highest number. `group` is
    the heading that it stands under.
    """
    return field(default=default, metadata={"label": label, "help": help, **more})


@dataclass(frozen=True)
class Settings:
    theme: str = _setting(
        "system",
        "Appearance",
        "Light, dark, or as the system is set.",
        choices={"system": "As the system", "light": "Light", "dark": "Dark"},
        group="Look",
    )
    high_contrast: bool = _setting(
        False, "High contrast", "Stronger text and lines, in light and in dark.", group="Look"
    )
    text_scale_percent: int = _setting(
        100,
        "Text size",
        "In percent; pictures and buttons follow.",
        between=(80, 200),
        group="Look",
    )
    send_with: str = _setting(
        "enter",
        "Send with",
        "The other one starts a new line.",
        choices={"enter": "Enter", "ctrl_enter": "Ctrl+Enter"},
        group="Writing",
    )
    threads: int = _setting(
        0,
        "Processor threads",
        "0 lets Inglenook choose. Takes effect when a model is loaded next.",
        between=(0, 256),
        group="Speed",
    )
    server_enabled: bool = _setting(
        False,
        "Local server",
        "Programs on this computer that have the token may use the loaded model, as they would use"
        " OpenAI's. Nothing listens while it is off.",
        group="Other programs",
    )
    server_port: int = _setting(
        0,
        "Server port",
        "0 takes a free one each time.",
        between=(0, 65535),
        group="Other programs",
    )
    server_token: str = _setting("")
    last_model: str = _setting("")
    window_geometry: str = _setting("")
    sidebar_width: int = _setting(264, between=(100, 2000))
    inspector_width: int = _setting(344, between=(100, 2000))
    sidebar_open: bool = _setting(True)
    inspector_open: bool = _setting(False)


def completed(settings: Settings) -> Settings:
    """With what others follow from: a server that is wanted has a token."""
    if settings.server_enabled and not settings.server_token:
        return replace(settings, server_token=new_token())
    return settings


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def load(path: Path) -> Settings:
    """What the file says; a value that no longer fits is its default, unknown names are ignored."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError, RecursionError) as error:
        log.warning("settings cannot be read, so the defaults are used: %s", error)
        _keep_as_found(path)
        return Settings()
    if not isinstance(found, dict):
        log.warning("settings are not a list of names and values, so the defaults are used")
        _keep_as_found(path)
        return Settings()
    kept = {each.name: found[each.name] for each in fields(Settings) if each.name in found}
    for each in fields(Settings):
        if each.name in kept and not _fits(each, kept[each.name]):
            log.warning("setting %s has an unknown value, so its default is used", each.name)
            del kept[each.name]
            _keep_as_found(path)
    return Settings(**kept)


def _keep_as_found(path: Path) -> None:
    """The next save writes over the file; what a person wrote there by hand stays beside it."""
    with suppress(OSError):
        shutil.copyfile(path, path.with_name(path.name + ".unreadable"))


def _fits(setting: "Field[Any]", value: object) -> bool:
    if type(value) is not type(setting.default):
        return False
    choices = setting.metadata.get("choices")
    lowest_highest = setting.metadata.get("between")
    if choices is not None:
        return value in choices
    if lowest_highest is not None:
        assert isinstance(value, int)
        return bool(lowest_highest[0] <= value <= lowest_highest[1])
    return True


def save(settings: Settings, path: Path) -> None:
    """All or nothing: the old file stays until the new one is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    with new.open("w", encoding="utf-8") as file:
        json.dump(asdict(settings), file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
