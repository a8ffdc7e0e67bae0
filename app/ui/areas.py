"""F6: the focus goes round the areas of the window that can be seen."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

Area = tuple[QWidget, QWidget | None]  # the area, and what in it takes the focus


def go_round(areas: Sequence[Area], focused: QWidget | None, step: int) -> None:
    shown = [(area, target) for area, target in areas if area.isVisible()]
    inside = [
        place
        for place, (area, _) in enumerate(shown)
        if focused is not None and (area is focused or area.isAncestorOf(focused))
    ]
    target = shown[(inside[0] + step) % len(shown) if inside else 0][1]
    if target is not None:
        target.setFocus(Qt.FocusReason.ShortcutFocusReason)
