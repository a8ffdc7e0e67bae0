"""Colours hold their contrast in both schemes; controls have names; text follows its size."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.ui import icons, theme
from app.ui.controls import (
    Badge,
    Chip,
    IconButton,
    Label,
    Popover,
    Radio,
    Segmented,
    Slider,
    Switch,
    box,
    button,
)
from app.ui.toast import Toast


@pytest.mark.parametrize(("front", "back", "least", "light", "dark"), theme.contrast_report())
def test_contrast_holds_in_both_schemes(front, back, least, light, dark):
    assert light >= least
    assert dark >= least


@pytest.mark.parametrize(
    ("front", "back", "least", "light", "dark"), theme.contrast_report(is_strong=True)
)
def test_high_contrast_is_high(front, back, least, light, dark):
    assert least in (4.5, 7.0)
    assert light >= least
    assert dark >= least


def test_contrast_is_what_wcag_says():
    assert theme.contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert theme.contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


def test_every_icon_can_be_drawn(qapp):
    for name in icons.names():
        picture = icons.icon(name, "text").pixmap(48, 48).toImage()
        assert picture.pixelColor(0, 0).alpha() in range(256)
        alphas = (picture.pixelColor(x, y).alpha() for x in range(48) for y in range(48))
        assert any(alphas), name


def test_a_scheme_is_chosen_by_the_person_or_the_desktop(qapp):
    assert theme.scheme_for(qapp, "light") is theme.LIGHT
    assert theme.scheme_for(qapp, "dark") is theme.DARK
    assert theme.scheme_for(qapp, "dark", is_strong=True) is theme.STRONG_DARK
    assert theme.scheme_for(qapp, "light", is_strong=True) is theme.STRONG_LIGHT
    is_dark = qapp.styleHints().colorScheme() == Qt.ColorScheme.Dark
    assert theme.scheme_for(qapp) is (theme.DARK if is_dark else theme.LIGHT)


def test_a_switch_of_scheme_reaches_labels(qapp, qtbot):
    label = Label("x", role="muted")
    qtbot.addWidget(label)
    label.show()
    for scheme in (theme.DARK, theme.LIGHT):
        theme.apply(qapp, scheme)
        assert label.palette().windowText().color().name() == scheme.muted.lower()


@pytest.mark.parametrize(("percent", "kept"), [(10, 0.8), (80, 0.8), (125, 1.25), (999, 2.0)])
def test_text_scale_stays_within_its_bounds(qapp, percent, kept):
    theme.set_text_scale(percent)
    assert theme.text_scale() == kept
    assert theme.reading_font().pixelSize() == round((theme.ui_px() + theme.READING) * kept)
    assert theme.font().pixelSize() == theme.ui_px()


def test_labels_never_read_markup(qtbot):
    label = Label("<b>x</b>")
    qtbot.addWidget(label)
    plain = Label("....x...")
    qtbot.addWidget(plain)
    assert label.text() == "<b>x</b>"
    assert label.textFormat() == Qt.TextFormat.PlainText


def made_controls() -> list[QWidget]:
    return [
        IconButton("copy", "Copy"),
        Chip("model", "SmolLM2", ("CPU", "muted")),
        Segmented([("One", None), ("Two", "options")], name="Tabs"),
        Switch(True, "Sampling"),
        Radio(False, "This one"),
        Slider(0, 10, 3, 5, "Temperature"),
        button("Open…", "primary"),
        Badge("CPU"),
        Toast("Deleted.", "Undo"),
    ]


def test_every_control_has_a_name(qtbot):
    for control in made_controls():
        qtbot.addWidget(control)
        for widget in [control, *control.findChildren(QAbstractButton)]:
            named = widget.accessibleName() or getattr(widget, "text", str)()
            assert named, type(widget).__name__


def test_controls_paint_in_every_state_and_scheme(qapp, qtbot):
    for scheme in (theme.LIGHT, theme.DARK):
        theme.apply(qapp, scheme)
        for control in made_controls():
            qtbot.addWidget(control)
            control.show()
            control.grab()
            control.setEnabled(False)
            control.grab()


def test_segments_move_with_the_arrow_keys(qtbot):
    tabs = Segmented([("One", None), ("Two", None), ("Three", None)], 0, "Tabs")
    qtbot.addWidget(tabs)
    tabs.show()
    tabs.activateWindow()
    qtbot.waitUntil(tabs.isActiveWindow)
    chosen = []
    tabs.changed.connect(chosen.append)
    tabs.group.button(0).setFocus()
    qtbot.keyClick(tabs.group.button(0), Qt.Key.Key_Right)
    assert tabs.current() == 1
    tabs.set_current(2)
    assert chosen in ([], [1])  # set_current() is no choice of the person


def window_with_opener(qtbot) -> tuple[QWidget, QWidget, Popover]:
    window, opener = QWidget(), button("Open")
    box("v", opener, "stretch", into=window)
    qtbot.addWidget(window)
    window.resize(500, 300)
    window.show()
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    popover = Popover(200)
    popover.body.addWidget(button("Inside"))
    opener.setFocus()
    popover.open_from(opener)
    return window, opener, popover


def test_a_popover_closes_on_escape_and_gives_the_focus_back(qtbot, qapp):
    window, opener, popover = window_with_opener(qtbot)
    assert popover.isVisible()
    assert popover.isAncestorOf(qapp.focusWidget())
    with qtbot.waitSignal(popover.closed):
        qtbot.keyClick(qapp.focusWidget(), Qt.Key.Key_Escape)
    assert not popover.isVisible()
    assert qapp.focusWidget() is opener
    assert window.isVisible()


def test_a_popover_closes_on_a_press_outside(qtbot):
    window, _opener, popover = window_with_opener(qtbot)
    outside = window.childAt(480, 280)
    with qtbot.waitSignal(popover.closed):
        qtbot.mouseClick(outside, Qt.MouseButton.LeftButton)


def test_a_toast_acts_once(qtbot):
    toast = Toast("Deleted.", "Undo")
    qtbot.addWidget(toast)
    seen = []
    toast.acted.connect(lambda: seen.append("acted"))
    toast.closed.connect(lambda: seen.append("closed"))
    undo = next(b for b in toast.findChildren(QAbstractButton) if b.text() == "Undo")
    undo.click()
    undo.click()
    toast.dismiss()
    assert seen == ["acted", "closed"]
