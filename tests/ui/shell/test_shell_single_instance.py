"""A second start gives its paths to the first and ends; a dead first one is no hindrance."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from app.ui.single_instance import SingleInstance

ROOT = Path(__file__).resolve().parents[3]
# A first instance in a process of its own, which says when it is ready and then waits.
FIRST = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from app.ui.single_instance import SingleInstance
app = QCoreApplication([])
instance = SingleInstance(Path(sys.argv[1]))
instance.opened.connect(lambda paths: (print(paths, flush=True), app.quit()))
print(instance.is_first(), flush=True)
app.exec()
"""


def start_first(data: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", FIRST, str(data)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "True"
    return process


def test_the_second_hands_over_and_the_first_hears_it(tmp_path: Path, qapp: Any) -> None:
    first = start_first(tmp_path)
    second = SingleInstance(tmp_path)
    assert not second.is_first()
    paths = ["/models/Qwen \u6a21\u578b.gguf", "/models/with space"]
    assert second.hand_over(paths)
    said, _ = first.communicate(timeout=60)
    assert said.strip() == str(paths)
    assert second.is_first()  # the first has gone
    second.close()


def test_after_a_kill_the_next_start_is_the_first(tmp_path: Path, qapp: Any) -> None:
    first = start_first(tmp_path)
    first.kill()
    first.communicate()
    second = SingleInstance(tmp_path)
    assert second.is_first()
    second.close()


def test_another_data_folder_is_another_app(tmp_path: Path, qapp: Any) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = SingleInstance(tmp_path / "one"), SingleInstance(tmp_path / "two")
    assert one.is_first()
    assert two.is_first()
    one.close()
    two.close()


def test_nobody_answers(tmp_path: Path, qapp: Any) -> None:
    assert not SingleInstance(tmp_path).hand_over([])
