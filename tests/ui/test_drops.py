"""What is said of files that hover over the window, before anything is opened."""

from pathlib import Path

import pytest

from app.ui.drops import verdict


def made(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("names", "dropped", "opened"),
    [
        (("genai_config.json", "model.onnx"), "", ""),
        (("genai_config.json", "model.onnx"), "model.onnx", ""),
        (("genai_config.json", "model.onnx"), "genai_config.json", ""),
        (("config.json", "model.onnx"), "", ""),
        (("config.json", "model.onnx"), "model.onnx", "model.onnx"),
        (("config.json", "onnx/model_q4.onnx"), "", ""),
        (("config.json", "onnx/model_q4.onnx"), "onnx/model_q4.onnx", "onnx/model_q4.onnx"),
        (("a.gguf",), "a.gguf", "a.gguf"),
        (("config.json",), "", None),
        (("model.safetensors",), "", None),
        (("notes.txt",), "notes.txt", None),
    ],
)
def test_what_would_be_opened(
    tmp_path: Path, names: tuple[str, ...], dropped: str, opened: str | None
) -> None:
    folder = made(tmp_path / "m", *names)
    found = verdict([str(folder / dropped) if dropped else str(folder)])
    assert found.path == (None if opened is None else str(folder / opened if opened else folder))
    assert found.title
