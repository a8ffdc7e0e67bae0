"""What the app is made of: the packages that it needs, their versions and licences.

Read from what is installed, or lies in the frozen folder, so it is what really runs. Knows nothing
of windows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from app.paths import resources

# As in pyproject.toml, which a test compares; the two runtimes exclude each other.
DIRECT = (
    "PySide6-Essentials", "onnxruntime-gpu", "onnxruntime", "numpy", "tokenizers", "platformdirs",
    "jinja2", "pillow", "markdown-it-py", "pygments", "onnx", "gguf", "llguidance", "ziamath",
    "pypdf", "psutil",
)  # fmt: skip
QT = (
    "Qt is used under the GNU Lesser General Public Licence, version 3. Its libraries lie beside "
    "the app as files of their own: you may replace them with others of the same interface."
)
_NAMES = re.compile(r"(licen[cs]e|copying|notice|copyright|authors)", re.IGNORECASE)
_OF_QT = ("LGPL-3.0.txt", "GPL-3.0.txt")  # the first is written as an addition to the second
_MOST_TEXT = 1_000_000


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    licence: str  # its short name, or ""


def packages() -> list[Package]:
    """What is needed, directly or by another, and is there; by name."""
    found: dict[str, Package] = {}
    waiting = list(DIRECT)
    while waiting:
        name = waiting.pop()
        try:
            dist = distribution(name)
        except PackageNotFoundError:
            continue
        key = _plain(name)
        if key in found:
            continue
        found[key] = Package(str(dist.metadata["Name"]), dist.version, _licence(dist))
        waiting += _needs(dist)
    return sorted(found.values(), key=lambda package: package.name.casefold())


def text_of(name: str) -> str:
    """The licence files of a package, one after the other; "" where it brings none."""
    if _plain(name) in ("pyside6-essentials", "shiboken6"):
        folder = resources() / "licences"
        return "\n\n\n".join((folder / file).read_text(encoding="utf-8") for file in _OF_QT)
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        return ""
    texts = []
    for file in sorted(files, key=str):
        if not _NAMES.search(file.name) or file.suffix in (".py", ".pyc"):
            continue
        try:
            text = file.locate().read_text(encoding="utf-8", errors="replace")  # type: ignore[attr-defined]
        except OSError:
            continue
        texts.append(f"{file.name}\n\n{text.strip()}")
    return "\n\n\n".join(texts)[:_MOST_TEXT]


def _needs(dist: Distribution) -> Iterator[str]:
    for line in dist.requires or []:
        requirement, _, condition = line.partition(";")
        match = re.match(r"[A-Za-z0-9._-]+", requirement)
        if match and "extra ==" not in condition:
            yield match[0]


def _licence(dist: Distribution) -> str:
    meta = dist.metadata
    said = meta["License-Expression"] or ""
    if not said:
        classes = [line for line in meta.get_all("Classifier") or [] if line.startswith("License")]
        said = classes[0].rsplit(" :: ", 1)[-1] if classes else meta["License"] or ""
    first = said.strip().split("\n")[0]
    return first if len(first) <= 60 else ""


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
