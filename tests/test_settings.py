"""Settings on disk: all or nothing, and never a reason not to start."""

import dataclasses
import json

import pytest

from app import settings
from app.settings import Settings


def test_settings_come_back(tmp_path):
    path = tmp_path / "new" / "settings.json"
    assert settings.load(path) == Settings()
    chosen = Settings(theme="dark", text_scale_percent=125, last_model="/models/é", threads=4)
    settings.save(chosen, path)
    settings.save(chosen, path)
    assert settings.load(path) == chosen
    assert [file.name for file in path.parent.iterdir()] == ["settings.json"]


@pytest.mark.parametrize("text", ["[" * 100_000, "", "{", "[]", "3", "\0", '"a"', '{"theme": '])
def test_a_file_that_cannot_be_read_means_the_defaults(tmp_path, text, caplog):
    path = tmp_path / "settings.json"
    path.write_text(text)
    assert settings.load(path) == Settings()
    assert caplog.text


def test_values_that_do_not_fit_and_unknown_names_are_left_out(tmp_path):
    path = tmp_path / "settings.json"
    found = {
        "theme": "purple",
        "threads": True,
        "text_scale_percent": 5000,
        "sidebar_open": 1,
        "last_model": None,
        "from_the_future": 1,
        "send_with": "ctrl_enter",
    }
    path.write_text(json.dumps(found))
    assert settings.load(path) == Settings(send_with="ctrl_enter")


def test_what_a_dialog_offers_can_be_shown():
    for each in dataclasses.fields(Settings):
        if each.metadata["label"]:
            assert each.metadata["help"].endswith(".")
            is_switch = isinstance(each.default, bool)
            is_text = isinstance(each.default, str)
            assert {"choices", "between"} & set(each.metadata) or is_switch or is_text
        if "choices" in each.metadata:
            assert each.default in each.metadata["choices"]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "settings.json"
    settings.save(Settings(theme="dark"), path)

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(settings.os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        settings.save(Settings(theme="light"), path)
    assert settings.load(path).theme == "dark"
