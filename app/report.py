"""What helps to find a fault, to be pasted by the person: versions, settings, the end of the log.

Nothing that was written in a chat is in the log, and so nothing of it is in here. Tokens and places
on the disk stay out too. Knows nothing of windows.
"""

import platform
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.licences import packages

LINES = 60
_SECRET = ("token", "geometry", "last_model")
_SHOWN = {"PySide6_Essentials", "onnxruntime", "onnxruntime-gpu", "numpy", "tokenizers"}


def report(version: str, settings: Mapping[str, Any], log: Sequence[str], home: Path) -> str:
    """`log` are lines, the last ones are taken; the person's own folder becomes “~”."""
    versions = [f"{p.name} {p.version}" for p in packages() if p.name in _SHOWN]
    kept = [
        f"{name} = {value}"
        for name, value in settings.items()
        if not any(word in name for word in _SECRET)
    ]
    lines = [
        f"Inglenook {version}",
        f"{platform.system()} {platform.release()} {platform.machine()}, "
        f"Python {sys.version.split()[0]}",
        ", ".join(versions),
        "",
        *kept,
        "",
        *(without_home(line, home) for line in log[-LINES:]),
    ]
    return "\n".join(lines) + "\n"


def without_home(line: str, home: Path) -> str:
    return re.sub(re.escape(str(home)), "~", line) if len(home.parts) > 1 else line


def tail(path: Path, lines: int, most_bytes: int = 400_000) -> list[str]:
    """The last lines of a file that may be growing; none where it is not there."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            size = file.tell()
            file.seek(max(0, size - most_bytes))
            data = file.read(most_bytes)
    except OSError:
        return []
    text = data.decode("utf-8", "replace").splitlines()
    return (text[1:] if size > most_bytes else text)[-lines:]
