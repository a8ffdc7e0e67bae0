"""What a model wrote is all there to be read, and nothing of it is interpreted or fetched."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QUrl
from PySide6.QtGui import QGuiApplication, QTextCursor, QTextDocument, QTextTable

from app.ui import markdown
from app.ui.document import x_of
from app.ui.highlight import highlight
from app.ui.richtext import RichText

SEEN = [
    "vector<int> a; <b>x</b>",
    "<script>alert(1)</script>",
    "a | b | c",
    "C:\\Users\\new\\table",
    "2 * 3 * 4 and snake_case_name",
    "if a < b && c > d: pass",
    "a & b; AT&T",
    "[x](javascript:alert(1)) [y](file:///etc/passwd)",
    "日本語 العربية 😀 e\u0301 \u200f",
    "100 % sure, #1, $5, ~3, `",
    "text with trailing backslash\\",
]


@pytest.mark.parametrize("text", SEEN)
def test_text_is_seen_as_written(text, drawn):
    assert drawn(text).toPlainText() == text


MARKUP = "*_`~[]\\&<>!#=+-|:\r\n\t "
UNSEEN = ("Cs", "Cc", "Zs", "Zl", "Zp", "Cn", "Co")  # categories that are no letters to look at
ORDINARY = st.text(
    st.characters(exclude_characters=MARKUP, exclude_categories=UNSEEN), min_size=1, max_size=12
)


@settings(
    max_examples=60,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(words=st.lists(ORDINARY, min_size=1, max_size=12))
def test_ordinary_words_are_seen_whatever_their_script(words, drawn):
    text = "w " + " ".join(words)
    assert drawn(text).toPlainText().split() == markdown.clean(text).split()


@pytest.mark.parametrize("code", ["a\\b <c> | d * e _f_ &amp; `x`", "\n\n  x\n\n", "\ttab", "~~~"])
def test_code_is_seen_as_written(code, drawn):
    assert drawn(f"````\n{code}\n````").toPlainText() == code


@pytest.mark.parametrize(
    "text", ["a\n```", "a\n```\nx\n```\n", "- a\n\n  ```\n  x\n  ```", "> ```\n> x"]
)
def test_a_card_at_the_end_is_seen_whole(text, drawn):
    view = drawn(text)
    assert view._decorations.cards[-1].rect.bottom() <= view.height()


def test_cells_beyond_the_head_are_kept(drawn):
    text = drawn("| a |\n|---|\n| 1 | two \\| x | three |").toPlainText()
    for word in ("1", "two | x", "three"):
        assert word in text


def test_colours_never_change_code():
    code = "def f(x):\r\n  return '''y\x0c" + "\n" * 3
    for language in ("python", "c", "html", "json", "no-such-language", ""):
        assert "".join(text for text, _ in highlight(code, language)) == code


def anchors(view: RichText) -> list[str]:
    found = []
    block = view.document().begin()
    while block.isValid():
        iterator = block.begin()
        while not iterator.atEnd():
            if iterator.fragment().charFormat().isAnchor():
                found.append(iterator.fragment().charFormat().anchorHref())
            iterator += 1
        block = block.next()
    return found


def test_only_safe_links_are_links(drawn):
    view = drawn(
        "[a](https://a.b) [b](http://c.d) [c](mailto:e@f.g) [d](file:///x) [e](javascript:x) "
        "[f](ftp://x.y) [g](data:text/html,x) [h](//x.y) <https://auto.link> ![i](file:///p.png)"
    )
    safe = ["https://a.b", "http://c.d", "mailto:e@f.g", "https://auto.link"]
    assert anchors(view) == safe


def test_bare_addresses_are_links(drawn):
    view = drawn("See https://a.b/c_(d), http://e.f. (https://g.h/i)")
    assert anchors(view) == ["https://a.b/c_(d)", "http://e.f", "https://g.h/i"]


def test_a_link_is_only_signalled(drawn, qtbot):
    view = drawn("[a](https://a.b)")
    with qtbot.waitSignal(view.link_activated) as caught:
        view.anchorClicked.emit(QUrl("https://a.b"))
    assert caught.args == ["https://a.b"]
    with qtbot.assertNotEmitted(view.link_activated):
        view.anchorClicked.emit(QUrl("file:///etc/passwd"))
    assert view.source().isEmpty()


def test_nothing_is_loaded(drawn, tmp_path):
    picture = tmp_path / "p.png"
    picture.write_bytes(b"x")
    view = drawn(f"![p]({picture.as_uri()}) ![q](http://a.b/c.png) <img src='{picture}'>")
    kind = QTextDocument.ResourceType.ImageResource
    assert view.loadResource(kind, QUrl.fromLocalFile(str(picture))) is None
    assert view.document().resource(kind, QUrl.fromLocalFile(str(picture))) is None
    assert "q" in view.toPlainText()
    assert f"<img src='{picture}'>" in view.toPlainText()


def test_a_message_of_a_person_is_shown_as_typed(qapp):
    view = RichText()
    text = "  # not a heading\n\n**not bold** <b>x</b>\n\n\n| a |\n  - b\t.\\"
    view.set_plain(text)
    assert view.toPlainText() == text


def test_copying_everything_gives_the_source(drawn, qapp):
    source = "# Head\n\n- **a**\n- b\n\n```\ncode\n```"
    view = drawn(source)
    view.selectAll()
    view.copy()
    assert QGuiApplication.clipboard().text() == source


def test_copying_a_part_gives_plain_text(drawn):
    view = drawn("one **two** three\n\nfour")
    view.setTextCursor(view.document().find("two"))
    assert view.createMimeDataFromSelection().text() == "two"
    assert not view.createMimeDataFromSelection().hasHtml()


def test_the_copy_button_gives_the_code(drawn):
    code = "x = 1\n\n" + "y" * 9_000 + "\n  z"
    view = drawn(f"a\n\n```py\nfirst\n```\n\n```\n{code}\n```\n")
    buttons = [b for b in view._copy_buttons if not b.isHidden()]
    assert [b.accessibleName() for b in buttons] == ["Copy code", "Copy code"]
    buttons[1].click()
    assert QGuiApplication.clipboard().text() == code


PATHOLOGICAL = {
    "quotes": ">" * 20_000 + " end",
    "lists": "- " * 5_000 + "end",
    "stairs": "".join("  " * n + "- x\n" for n in range(300)) + "end",
    "brackets": "[" * 20_000 + "end",
    "pictures": "![" * 10_000 + "end",
    "stars": "*a " * 7_000 + "end",
    "mixed": "**a _b `c [d " * 1_600 + "end",
    "columns": "|a" * 10_000 + "\n" + "|-" * 10_000 + "\n" + "|end" * 10_000,
    "fences": "```\n~~~\n````\n" * 1_000 + "end",
    "one line": "x" * 100_000 + " end",
    "nothing": "\x00" * 5_000 + "\ud800" * 5_000 + "end",
    "spaces": " " * 50_000 + "end",
    "rules": "- - " * 5_000 + "end",
}


@pytest.mark.parametrize("name", PATHOLOGICAL)
def test_hostile_text_is_drawn_whole(name, drawn):
    text = PATHOLOGICAL[name]
    view = drawn(text)
    shown = view.toPlainText()
    assert "end" in shown
    if name in ("quotes", "stairs", "brackets", "columns", "one line"):
        kept = set("".join(text.split())) - set(" |-")
        assert kept <= set(shown)
    view.grab()


def test_selection_survives_streaming(qapp):
    view = RichText()
    text = "First paragraph here.\n\nSecond one, with **bold** words"
    view.stream(text)
    for wanted in ("paragraph", "words"):
        cursor = view.document().find(wanted)
        view.setTextCursor(cursor)
        for more in (" and", " more\n\n", "- list\n- of\n", "\nend"):
            text += more
            view.stream(text)
            view.place(400)
            assert view.textCursor().selectedText() == wanted
    text += "\n\n[one]: https://example.org\n"  # a definition draws everything once more
    view.finish(text)
    assert view.textCursor().selectedText() == "words"


def test_selection_up_to_the_end_does_not_grow(qapp):
    view = RichText()
    view.stream("One two")
    cursor = view.textCursor()
    cursor.setPosition(4)
    cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)
    view.stream("One two three\n\nfour")
    assert view.textCursor().selectedText() == "two"


@pytest.mark.parametrize("text", ["The `join()` method", "(`a`)", "`x` and `y`, then **`z`** too"])
def test_inline_code_leaves_room_beside_it(text, drawn):
    """Its painted edge reaches neither the space before it nor what stands behind it."""
    view = drawn(text)
    block = view.document().begin()
    line, shown = block.layout().lineAt(0), block.text()
    codes = text.split("`")[1::2]
    assert len(view._decorations.pills) == len(codes)
    space = 4  # px that one has without the room that is made
    for pill, code in zip(view._decorations.pills, codes, strict=True):
        at = shown.index(code)
        left = x_of(line, at - 1) + space if at else -space
        assert left <= pill.rect.left() < pill.rect.right() < x_of(line, at + len(code))


def test_code_too_long_for_colours_is_not_drawn_anew_when_it_ends(qapp, drawn, dump):
    lines = [f"value_{n} = {n}" for n in range(4_000)]
    text = "Before.\n\n```python\n" + "\n".join(lines) + "\n```\n\nAfter `it`."
    view = RichText()
    changes = []
    view.document().contentsChange.connect(lambda _at, gone, new: changes.append((gone, new)))
    for end in range(1_000, len(text) + 997, 997):
        view.stream(text[:end])
    view.finish(text)
    assert max(gone for gone, _ in changes[50:]) < 1_000
    view.place(500)
    assert dump(view) == dump(drawn(text))
    assert view.toPlainText() == "Before.\n" + "\n".join(lines) + "\nAfter it."


@pytest.mark.parametrize(
    "before", ["|a|\n|-|\n|1|", "> |a|\n> |-|\n> |1|", "- x\n\n  |a|\n  |-|\n  |1|"]
)
def test_code_stands_below_the_table_before_it(drawn, before):
    view = drawn(f"{before}\n\n```py\nx = 1\n```\n")
    layout = view.document().documentLayout()
    table = next(
        frame
        for frame in view.document().rootFrame().childFrames()
        if isinstance(frame, QTextTable)
    )
    (card,) = view.cards
    last = layout.blockBoundingRect(table.cellAt(1, 0).lastCursorPosition().block())
    assert card.rect.top() > last.bottom()
