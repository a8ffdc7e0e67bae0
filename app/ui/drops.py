"""What would happen with files that hover over the window. Pure: looks at names and folders."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CONFIG = "genai_config.json"


@dataclass(frozen=True)
class Verdict:
    """`path` is what would be opened; None: nothing, and `text` says why."""

    path: str | None
    title: str
    text: str


def verdict(paths: Sequence[str]) -> Verdict:
    if len(paths) > 1:
        return Verdict(None, "One model at a time", "Drop a single model file or folder.")
    path = Path(paths[0]) if paths else Path()
    if path.suffix.lower() == ".gguf":
        return Verdict(
            str(path), f"Add {path.name}", "It is converted and kept in the models folder."
        )
    if path.is_dir() and (path / CONFIG).is_file():
        return Verdict(str(path), f"Add {path.name}", "It is copied into the models folder.")
    if path.name == CONFIG or path.suffix == ".onnx":
        folder = path.parent
        return Verdict(str(folder), f"Add {folder.name}", "It is copied into the models folder.")
    if path.is_dir():
        return Verdict(None, f"{path.name} is not a model", f"The folder has no {CONFIG}.")
    return Verdict(
        None,
        f"{path.name} can't be opened here",
        f"Drop a GGUF file, or a folder with a {CONFIG}.",
    )
