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
# From its root on, up to what ends a name in our sentences; names may hold blanks.
_PLACE = re.compile(r"""(?<![\w.<])(?:[A-Za-z]:[\\/]|\\\\|~?/(?=\S))[^:"'“”<>|\n]+""")
_OWN = re.compile(r"[\\/](?:app|site-packages|lib[\\/]python3\.\d+)[\\/][\w\\/.-]+\.py\b")
_SHOWN = {"PySide6_Essentials", "onnxruntime", "onnxruntime-gpu", "numpy", "tokenizers"}


def report(version: str, settings: Mapping[str, Any], log: Sequence[str]) -> str:
    """`log` are lines, of which the last ones are taken."""
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
        *(without_places(line) for line in log[-LINES:]),
    ]
    return "\n".join(lines) + "\n"


def without_places(line: str) -> str:
    """Names of files and folders may tell of a person; of the program's own code they stay."""

    def shown(match: re.Match[str]) -> str:
        own = _OWN.search(match[0])
        return own[0].lstrip("\\/") if own else "<a place>"

    return _PLACE.sub(shown, line)


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
