"""What would happen with files that hover over the window. Pure: looks at names, and at what JSON
files begin with."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CONFIG = "genai_config.json"


@dataclass(frozen=True)
class Verdict:
    """`path` is what would be opened, `files` what would be attached; neither: `text` says why.

    `is_chats`: what would be opened are chats.
    """

    path: str | None
    title: str
    text: str
    files: tuple[str, ...] = ()
    is_chats: bool = False


def verdict(paths: Sequence[str]) -> Verdict:
    if len(paths) > 1:
        return _several([Path(path) for path in paths])
    path = Path(paths[0]) if paths else Path()
    if path.suffix.lower() == ".gguf":
        return Verdict(
            str(path), f"Add {path.name}", "It is converted and kept in the models folder."
        )
    if path.is_dir() and (path / CONFIG).is_file():
        return Verdict(str(path), f"Add {path.name}", "It is copied into the models folder.")
    if (path.is_dir() or path.suffix == ".onnx") and _is_export(path):
        return Verdict(str(path), f"Add {path.name}", "It is copied into the models folder.")
    if path.name == CONFIG or path.suffix == ".onnx":
        folder = path.parent
        return Verdict(str(folder), f"Add {folder.name}", "It is copied into the models folder.")
    if path.is_dir():
        return Verdict(
            None, f"{path.name} is not a model", f"The folder has no {CONFIG}, and no config.json."
        )
    if not path.is_file():
        return Verdict(None, f"{path.name} can't be opened here", "It is no file on this computer.")
    if path.suffix.lower() in (".json", ".zip") and _holds_chats(path):
        words = "They join yours; what is there already is not doubled."
        return Verdict(str(path), f"Import the chats in {path.name}", words, is_chats=True)
    return Verdict(
        None, f"Attach {path.name}", "It goes along with your next message.", (str(path),)
    )


def _several(paths: Sequence[Path]) -> Verdict:
    if any(_is_model(path) for path in paths):
        return Verdict(None, "One model at a time", "Drop a single model file or folder.")
    files = tuple(str(path) for path in paths if path.is_file())
    if not files:
        return Verdict(None, "Folders can't be attached", "Drop the files in them.")
    words = "They go along with your next message."
    return Verdict(None, f"Attach {len(files)} file{'s' * (len(files) != 1)}", words, files)


def _is_export(path: Path) -> bool:
    """Of Hugging Face's tools: a config.json beside graphs, or above the folder that holds them."""
    folder = path.parent if path.suffix == ".onnx" else path
    has_own = (folder / CONFIG).is_file()
    has_graph = path.suffix == ".onnx" or any(
        next(folder.glob(pattern), None) for pattern in ("*.onnx", "onnx/*.onnx")
    )
    places = [folder, folder.parent] if folder.name == "onnx" else [folder]
    has_config = any((place / "config.json").is_file() for place in places)
    return not has_own and has_graph and has_config


def _holds_chats(path: Path) -> bool:
    from app.chat.exchange import looks_like_chats

    return looks_like_chats(path)


def _is_model(path: Path) -> bool:
    return path.suffix.lower() in (".gguf", ".onnx") or (path / CONFIG).is_file()
