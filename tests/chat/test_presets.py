"""Presets of one's own are small files that anyone can read, change, give away, or damage."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.chat.messages import Options
from app.chat.presets import (
    PresetError,
    delete_preset,
    own_presets,
    preset_like,
    read_preset,
    save_preset,
)

MINE = Options(
    temperature=0.35, top_k=12, system_prompt="Be brief.", stop_strings=("END",), banned=("um",)
)


def names(folder: Path) -> list[str]:
    return [preset.name for preset in own_presets(folder)[0]]


def test_what_is_saved_comes_back_without_the_seed(tmp_path: Path) -> None:
    save_preset(tmp_path / "presets", "  My   way ", Options(seed=7, temperature=0.1))
    (preset,), bad = own_presets(tmp_path / "presets")
    assert (preset.name, preset.options, bad) == ("My way", Options(temperature=0.1), [])
    document = json.loads(preset.path.read_text("utf-8"))
    assert document == {
        "format": "inglenook-preset", "name": "My way", "options": {"temperature": 0.1},
    }  # fmt: skip


def test_the_same_name_is_the_same_preset_whatever_its_letters(tmp_path: Path) -> None:
    save_preset(tmp_path, "Notes", MINE)
    save_preset(tmp_path, "NOTES", Options(temperature=1.0))
    (preset,), _ = own_presets(tmp_path)
    assert (preset.name, preset.options.temperature) == ("NOTES", 1.0)


def test_names_that_make_the_same_file_name_are_two(tmp_path: Path) -> None:
    save_preset(tmp_path, "a/b", MINE)
    save_preset(tmp_path, "a:b", Options(temperature=1.0))
    assert names(tmp_path) == ["a/b", "a:b"]
    first, second = own_presets(tmp_path)[0]
    assert first.path.parent == second.path.parent == tmp_path
    assert preset_like([first, second], MINE) == first
    assert preset_like([first, second], Options(temperature=1.0, seed=4)) == second
    assert preset_like([first, second], Options()) is None


def test_files_that_are_none_are_named_and_left(tmp_path: Path) -> None:
    save_preset(tmp_path, "Good", MINE)
    for name, text in (
        ("a.json", "{"), ("b.json", "[]"), ("c.json", '{"format": "inglenook-preset"}'),
        ("d.json", '{"format": "inglenook-preset", "name": "", "options": {}}'),
        ("e.json", "[" * 100_000), ("f.json", '{"a": 1}'),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
    found, bad = own_presets(tmp_path)
    assert [preset.name for preset in found] == ["Good"]
    assert bad == ["a.json", "b.json", "c.json", "d.json", "e.json", "f.json"]
    assert (tmp_path / "a.json").read_text() == "{"


def test_values_of_another_kind_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    document = {
        "format": "inglenook-preset", "name": "Odd",
        "options": {"temperature": "hot", "top_k": 5, "banned": 3, "new_thing": 1},
    }  # fmt: skip
    path.write_text(json.dumps(document))
    preset = read_preset(path)
    assert preset is not None
    assert preset.options == Options(top_k=5)


def test_what_cannot_be_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(PresetError, match="needs a name"):
        save_preset(tmp_path, "  ", MINE)
    (tmp_path / "file").write_text("")
    with pytest.raises(PresetError, match="could not be saved"):
        save_preset(tmp_path / "file", "x", MINE)
    assert own_presets(tmp_path / "file") == ([], [])
    preset = save_preset(tmp_path, "x", MINE)
    delete_preset(preset)
    delete_preset(preset)  # gone is gone
    assert names(tmp_path) == []


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.text(max_size=40))
def test_any_name_is_kept_or_refused(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("presets")
    try:
        save_preset(folder, name, MINE)
    except PresetError:
        assert not name.split()
        return
    (preset,), bad = own_presets(folder)
    assert bad == []
    assert preset.options == MINE
    assert preset.name == " ".join(name.encode("utf-8", "replace").decode().split())


def test_200_spoilt_files_end_nothing(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    draw = random.Random(seed)
    whole = save_preset(tmp_path, "Good", MINE).path.read_bytes()
    path = tmp_path / "spoilt.json"
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(draw.randrange(1, 6)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(data[: draw.randrange(len(data))] if draw.random() < 0.3 else data)
        own_presets(tmp_path)
    assert "Good" in names(tmp_path)
