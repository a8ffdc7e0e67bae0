"""What the app says that it is made of is what it is made of."""

import re
import tomllib
from pathlib import Path

import pytest

from app import licences

ROOT = Path(__file__).parents[1]


def test_all_direct_needs_are_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = {re.match(r"[A-Za-z0-9._-]+", need)[0].lower() for need in project["dependencies"]}
    assert names == {name.lower() for name in licences.DIRECT}


def test_what_others_need_is_there_and_nothing_of_the_tests() -> None:
    found = {package.name.lower() for package in licences.packages()}
    assert {"markupsafe", "mdurl", "protobuf", "shiboken6", "numpy"} <= found
    assert not found & {"pytest", "hypothesis", "ruff", "mypy", "openai"}
    assert all(package.version for package in licences.packages())
    assert all(package.licence for package in licences.packages())


@pytest.mark.parametrize("name", ["PySide6_Essentials", "shiboken6"])
def test_the_licence_of_qt_is_whole(name: str) -> None:
    text = licences.text_of(name)
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in text
    assert "GNU GENERAL PUBLIC LICENSE" in text
    assert "replace" in licences.QT


def test_texts_of_others() -> None:
    assert "Permission is hereby granted" in licences.text_of("markdown-it-py")
    assert licences.text_of("no-such-package") == ""
