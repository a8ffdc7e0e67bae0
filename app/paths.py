"""Where things are: the product's own resources, and the folders of the person who runs it."""

import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import platformdirs


@cache
def resources() -> Path:
    """The resources folder: in a frozen app, in an installed wheel or in a checkout."""
    package = Path(__file__).resolve().parent
    frozen = getattr(sys, "_MEIPASS", None)
    places = [Path(frozen) / "resources"] if frozen else []
    places += [package / "resources", package.parent / "resources"]
    for place in places:
        if place.is_dir():
            return place
    raise FileNotFoundError(f"The resources folder is missing beside {package}: install again.")


@dataclass(frozen=True)
class Folders:
    """One person's data. Model files are large, so they stay on this machine (no roaming)."""

    data: Path

    @property
    def models(self) -> Path:
        return self.data / "models"

    @property
    def database(self) -> Path:
        return self.data / "chats.sqlite3"

    @property
    def settings(self) -> Path:
        return self.data / "settings.json"

    @property
    def logs(self) -> Path:
        return self.data / "logs"

    @staticmethod
    def default() -> "Folders":
        place = platformdirs.user_data_dir("inglenook", appauthor=False, roaming=False)
        return Folders(Path(place))
