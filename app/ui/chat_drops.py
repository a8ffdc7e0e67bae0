"""Chats and folders that are dragged over their list: where they would go, and how that is shown.

Holds no drag itself; the view asks for a `Drop` at a point, paints it, and does it.
"""

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QMimeData, QPoint, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPixmap
from PySide6.QtWidgets import QListView

from app.ui.chat_list import Place
from app.ui.chat_model import CHATS_FORMAT, FOLDER_FORMAT, ChatListModel
from app.ui.controls import fill_round, text_width
from app.ui.theme import BODY, H_ROW, R_CONTROL, SMALL, color, font


@dataclass(frozen=True)
class Drop:
    """Chats to a place, or a folder to a position; `words` say so."""

    words: str
    chats: tuple[int, ...] = ()
    place: Place = None
    folder: int | None = None
    position: int = 0


def dragged_chats(data: QMimeData) -> tuple[int, ...]:
    return _numbers(data, CHATS_FORMAT)


def dragged_folder(data: QMimeData) -> int | None:
    return next(iter(_numbers(data, FOLDER_FORMAT)), None)


def _numbers(data: QMimeData, kind: str) -> tuple[int, ...]:
    words = bytes(data.data(kind).data()).decode("ascii", "replace").split()
    return tuple(int(word) for word in words if word.isdecimal())


def drop_at(view: QListView, model: ChatListModel, data: QMimeData, at: QPoint) -> Drop | None:
    """None: nothing would change, or it has no place there."""
    if model.is_searching:
        return None
    folder = dragged_folder(data)
    if folder is not None:
        return _folder_drop(view, model, folder, at)
    found = (model.chat(each) for each in dragged_chats(data))
    chats = [chat for chat in found if chat is not None and not chat.is_temporary]
    place = _place_at(view, model, at)
    if place == "folders":
        return None
    moved = tuple(chat.id for chat in chats if model.place_of(chat) != place)
    return Drop(words_of(model, place), moved, place) if moved else None


def _place_at(view: QListView, model: ChatListModel, at: QPoint) -> Place | Literal["folders"]:
    if not model.has_pinned() and at.y() < H_ROW:
        return "pinned"
    return model.place_at(view.indexAt(at))


def _folder_drop(view: QListView, model: ChatListModel, folder: int, at: QPoint) -> Drop | None:
    """Before the folder in whose upper half the pointer is, else behind it."""
    order = [each.id for each in model.folders()]
    if folder not in order:
        return None
    index = view.indexAt(at)
    place = model.place_at(index)
    if place in ("pinned", "folders"):
        position = 0
    elif isinstance(place, int):
        is_upper = at.y() < view.visualRect(index).center().y()
        is_folder = model.folder_at(index) is not None
        position = order.index(place) + (0 if is_folder and is_upper else 1)
    else:
        position = len(order)
    position -= position > order.index(folder)
    if position == order.index(folder):
        return None
    return Drop("Move the folder here", folder=folder, position=position)


def words_of(model: ChatListModel, place: Place) -> str:
    if place == "pinned":
        return "Pin"
    names = (folder.name for folder in model.folders() if folder.id == place)
    return "Move out of the folder" if place is None else f"Move to {next(names, '')}"


# ---- painting
def paint_drop(draw: QPainter, view: QListView, model: ChatListModel, drop: Drop) -> None:
    """A frame around the place, or a line between folders; below, in words, what will happen."""
    if drop.folder is not None:
        y = _line_of(view, model, drop)
        fill_round(draw, QRectF(12, y - 1.5, view.viewport().width() - 24, 3), 1.5, color("accent"))
    else:
        area = _area_of(view, model, drop.place)
        fill_round(draw, QRectF(area).adjusted(5, 0, -5, 0), R_CONTROL, None, color("accent"), 2)
    _paint_words(draw, view.viewport().rect(), drop.words)


def _area_of(view: QListView, model: ChatListModel, place: Place) -> QRect:
    inside = view.viewport().rect()
    if place == "pinned" and not model.has_pinned():
        return QRect(0, 0, inside.width(), H_ROW)
    rows = model.rows_of_place(place)
    if not rows:
        return QRect(0, inside.bottom() - 3 * H_ROW, inside.width(), 3 * H_ROW)
    first, last = (view.visualRect(model.index(row)) for row in (rows[0], rows[-1]))
    if place is None:
        last.setBottom(max(last.bottom(), inside.bottom()))
    return first.united(last).intersected(inside)


def _line_of(view: QListView, model: ChatListModel, drop: Drop) -> int:
    """Between the folders that it would stand between."""
    others = [folder.id for folder in model.folders() if folder.id != drop.folder]
    if drop.position < len(others):
        row = model.rows_of_place(others[drop.position])[0]
        return view.visualRect(model.index(row)).top()
    rows = model.rows_of_place(others[-1])
    return view.visualRect(model.index(rows[-1])).bottom()


def _paint_words(draw: QPainter, inside: QRect, words: str) -> None:
    used = font(SMALL, 600)
    most = inside.width() - 40
    shown = QFontMetrics(used).elidedText(words, Qt.TextElideMode.ElideRight, most)
    width = text_width(shown, used) + 20
    area = QRectF((inside.width() - width) / 2, inside.bottom() - 34, width, 26)
    fill_round(draw, area, R_CONTROL, color("raised"), color("control"))
    draw.setFont(used)
    draw.setPen(color("text"))
    draw.drawText(area, Qt.AlignmentFlag.AlignCenter, shown)


def drag_picture(title: str, count: int, ratio: float) -> QPixmap:
    """What hangs at the pointer: the title, or how many."""
    used = font(BODY, 500)
    text = title if count == 1 else f"{count} chats"
    text = QFontMetrics(used).elidedText(text, Qt.TextElideMode.ElideRight, 200)
    width, height = text_width(text, used) + 24, H_ROW
    picture = QPixmap(int(width * ratio), int(height * ratio))
    picture.setDevicePixelRatio(ratio)
    picture.fill(Qt.GlobalColor.transparent)
    draw = QPainter(picture)
    draw.setRenderHint(QPainter.RenderHint.Antialiasing)
    area = QRectF(0, 0, width, height)
    fill_round(draw, area, R_CONTROL, color("raised"), color("control"))
    draw.setFont(used)
    draw.setPen(color("text"))
    draw.drawText(area, Qt.AlignmentFlag.AlignCenter, text)
    draw.end()
    return picture
