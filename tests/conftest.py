"""Shared by all tests: Qt draws offscreen, and the folder of models made for tests."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("LANG", "C.UTF-8")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    return Path(__file__).parent / "data"
