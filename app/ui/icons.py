"""Line icons, recoloured from the theme and drawn as vectors at any device pixel ratio.

QtSvg knows no CSS variables, so `currentColor` is replaced in the text of the file.
"""

from functools import lru_cache

from PySide6.QtCore import QByteArray, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QIconEngine, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from app import paths
from app.ui import theme


@lru_cache(maxsize=256)
def _source(name: str) -> str:
    return (paths.resources() / "icons" / f"{name}.svg").read_text(encoding="utf-8")


@lru_cache(maxsize=512)
def _renderer(name: str, value: str) -> QSvgRenderer:
    return QSvgRenderer(QByteArray(_source(name).replace("currentColor", value).encode()))


def names() -> list[str]:
    return sorted(path.stem for path in (paths.resources() / "icons").glob("*.svg"))


def paint(painter: QPainter, name: str, rect: QRectF, role: str = "muted") -> None:
    """Draws straight into a painter: what delegates and painted buttons use."""
    _renderer(name, theme.color(role).name()).render(painter, rect)


class _Engine(QIconEngine):
    """Lets menus, actions and line edits use the same drawings, sharp at 100 to 300 %.

    The colour is asked for at paint time, so icons made before a change of scheme follow it.
    """

    def __init__(self, name: str, role: str) -> None:
        super().__init__()
        self._name, self._role = name, role

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, _state: QIcon.State) -> None:
        role = "disabled" if mode == QIcon.Mode.Disabled else self._role
        paint(painter, self._name, QRectF(rect), role)

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        picture = QPixmap(size)
        picture.fill(QColor(Qt.GlobalColor.transparent))
        painter = QPainter(picture)
        self.paint(painter, picture.rect(), mode, state)
        painter.end()
        return picture

    def clone(self) -> QIconEngine:
        return _Engine(self._name, self._role)


def icon(name: str, role: str = "muted") -> QIcon:
    return QIcon(_Engine(name, role))
