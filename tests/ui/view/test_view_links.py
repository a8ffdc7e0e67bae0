"""A link is seen in full before it is opened, and one that hides where it leads is not opened."""

import pytest
from PySide6.QtCore import QPoint, QUrl
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip

from app.ui.links import doubt
from app.ui.richtext import link_hint

PLAIN = ["https://a.b/c?d=e#f", "http://a.b:80/", "mailto:e@f.g", "https://a.b/@user/x"]
DOUBTFUL = [
    "https://bank.com@evil.net/",
    "https://a:b@evil.net",
    "https://xn--pple-43d.com/",
    "https://\u0430pple.com/",
    "javascript:alert(1)",
    "file:///etc/passwd",
    "https://[broken",
    "https:",
]


@pytest.mark.parametrize("address", PLAIN)
def test_plain_addresses_are_opened(address, drawn, qtbot):
    view = drawn(f"[x](<{address}>)")
    with qtbot.waitSignal(view.link_activated) as caught:
        view.anchorClicked.emit(QUrl(address))
    assert caught.args == [address]


@pytest.mark.parametrize("address", DOUBTFUL)
def test_doubtful_addresses_are_told_and_never_opened(address, drawn, qtbot):
    assert doubt(address).endswith(".")
    view = drawn("x")
    with qtbot.assertNotEmitted(view.link_activated):
        view.anchorClicked.emit(QUrl(address))


def test_the_hint_shows_the_address_that_is_opened():
    assert link_hint("https://a.b/c") == "<qt>https://a.b/c"
    hint = link_hint("https://\u0430pple.com/?a=1&b=2")
    assert hint.startswith("<qt>https://xn--pple-43d.com/?a=1&amp;b=2<br>The name of this site")


@pytest.mark.qt_log_ignore(r"does not support raise\(\)", extend=True)
def test_hovering_a_link_shows_its_address(drawn):
    view = drawn("[words](https://a.b/c)")
    view.show()
    cursor = view.textCursor()
    cursor.setPosition(2)
    place = view.cursorRect(cursor).center()
    event = QHelpEvent(QHelpEvent.Type.ToolTip, place, QPoint(0, 0))
    QApplication.sendEvent(view.viewport(), event)
    assert QToolTip.text() == "<qt>https://a.b/c"
    QToolTip.hideText()
