"""What a model would take, and whether that fits."""

from pathlib import Path

import psutil
import pytest

from app.library.errors import LibraryError
from app.library.memory import Memory, fit_of, memory_now, memory_of
from app.library.models import inspect, rename


def test_figures_of_this_computer_are_the_systems() -> None:
    memory = memory_now()
    assert memory.total_bytes == psutil.virtual_memory().total
    assert 0 < memory.own_bytes < memory.total_bytes
    assert 0 < memory.free_bytes <= memory.total_bytes


@pytest.mark.starter
def test_the_starter_takes_no_more_than_said(starter_stored: Path) -> None:
    """Weights, 8,192 tokens of 30 layers with 3 heads of 64 numbers, and the work."""
    model = inspect(starter_stored)
    cache = 8192 * 30 * 3 * 64 * 2 * 4
    assert memory_of(model) == model.size_bytes + cache + 120_000_000


@pytest.mark.parametrize(
    ("needed", "fit"),
    [(1, "fits"), (84, "fits"), (90, "tight"), (140, "tight"), (160, "too large")],
)
def test_what_fits(needed: int, fit: str) -> None:
    assert fit_of(needed, Memory(total_bytes=200, free_bytes=100, own_bytes=0)) == fit


def test_more_than_there_is_never_fits() -> None:
    assert fit_of(201, Memory(200, 200, 0)) == "too large"


@pytest.mark.parametrize("name", ["", "  ", "other"])
def test_names_that_cannot_be(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "other").mkdir()
    with pytest.raises(LibraryError):
        rename(tmp_path / "a", name)
    assert (tmp_path / "a").is_dir()


def test_a_name_is_made_fit_for_a_disk(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert rename(tmp_path / "a", " b/c:d ").name == "b c d"
    assert rename(tmp_path / "b c d", "b c d").name == "b c d"
