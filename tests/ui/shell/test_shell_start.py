"""The program as it is started: in a process of its own, with --smoke."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.ui.single_instance import SingleInstance

ROOT = Path(__file__).resolve().parents[3]


def start(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "app", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def test_smoke_answers_a_prompt(data_folder: Path, tmp_path: Path) -> None:
    done = start("--smoke", "--data", str(tmp_path), str(data_folder / "tiny-llama"))
    assert done.returncode == 0, done.stderr
    assert "tiny-llama answered" in done.stdout
    assert "Traceback" not in done.stderr + (tmp_path / "logs" / "inglenook.log").read_text()


def test_smoke_without_a_model_opens_the_window(tmp_path: Path) -> None:
    done = start("--smoke", "--data", str(tmp_path))
    assert (done.returncode, "no model" in done.stdout) == (0, True), done.stderr


def test_smoke_says_what_is_wrong(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.gguf"
    foreign.write_bytes(b"not a model at all")
    done = start("--smoke", "--data", str(tmp_path / "data"), str(foreign))
    assert done.returncode == 1
    assert "foreign.gguf can't be used" in done.stdout
    assert "Traceback" not in done.stderr


def test_the_window_does_not_wait_for_the_engine() -> None:
    code = (
        "import sys, app.__main__; "
        "heavy = {'onnxruntime', 'numpy', 'onnx', 'gguf', 'tokenizers', 'jinja2'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to handle")
def test_a_signal_to_end_ends_as_the_menu_does(tmp_path: Path, qapp: Any, qtbot: Any) -> None:
    data = tmp_path / "data"
    command = [sys.executable, "-m", "app", "--data", str(data)]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    second = SingleInstance(data)
    qtbot.waitUntil(lambda: data.exists() and second.hand_over([]), timeout=60_000)
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert '"window_geometry"' in (data / "settings.json").read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no read-only folders like these")
def test_a_data_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = start("--smoke", "--data", str(tmp_path / "file" / "data"))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
