"""A view that grew piece by piece is the view that is drawn at once, whatever the pieces were."""

import random

import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from app.ui import richtext
from app.ui.richtext import RichText

DOCUMENTS = {
    "prose": "One *two* **three** `four`.\nNext.\n\nA [link](https://example.org) and ~~gone~~.",
    "headings": "# One\n\n## Two *x*\nText\n\nThree\n=====\n\nFour\n---\n\ntext\n\n---\n\nend",
    "emphasis that looked like a rule": "para\n***bold*** and more",
    "hashtag that looked like a heading": "para\n#hashtag",
    "code span that looked like a fence": "para\n```inline``` text",
    "lists": "1. one\n2. two\n   - in\n   - it\n3. three\n\n7) seven\n\n* a\n\n  2nd\n* b\n\nend",
    "tasks": "- [ ] open\n- [x] done\n- [y] neither\n",
    "list with code": "- a\n\n  ```js\n  let a\n  ```\n- b\n\nend",
    "tables": "| a | b |\n|---|--:|\n| 1 | 2 | 3 |\n| x \\| y | `z` |\n\n|c|\n|:-:|\n| 3 |\n\nend",
    "code behind a table": "|a|\n|-|\n|1|\n\n```py\nx = 1\n```\n\n|b|\n|-|\n|2|\n\nend",
    "table that was a paragraph": "text\na | b\n--|--\n1 | 2\n\nend",
    "quotes": "> one\n> two\n>\n> > nested\n\ntext\n\n> ```\n> code\n> ```\n",
    "code": "```python\nx = 1\n\n\ndef f(): pass\n```\n\n```\ny\n```\n~~~~\n```\n~~~\n~~~~\nafter",
    "code first, never closed": "```c\nint a;\n  if (a < b) {}\n\n",
    "indented code": "text\n\n    a = 1\n    b\n\nend",
    "late reference": "See [one] and [two].\n\nM.\n\n[one]: https://a.b/1\n[two]: mailto:a@b.c\n",
    "early reference": "[one]: https://example.org/1\n\nSee [one].\n\nAgain [one].",
    "html": "<div>\n<b>x</b> vector<int> a;\n</div>\n\n<!-- seen -->\n\n<script>alert(1)</script>",
    "other scripts": "العربية مرحبا\n\n- نقطة\n\n日本語のテキスト 😀👩\u200d👩\u200d👧 e\u0301\n",
    "line ends": "one\r\ntwo\r\n\r\n- a\r\n- b\r\rend",
    "what no document can hold": "a\x00b\ud800c\ufdd0d\u2029e\ufffcf",
    "a paragraph without end": "word " * 2_500 + "\n\nend",
    "lines without end": "word\n" * 2_500 + "\n- and\n- a list",
    "a paragraph that becomes a heading": "word " * 1_000 + "x\n=====\n\nend",
    "one word without end": "x" * 9_001,
    "code without end": "```\n" + "y" * 9_001 + "\nz\n```\n",
    "nested beyond reading": ">" * 200 + " deep\n\n" + "- " * 100 + "deeper\n\nend",
    "a table too wide": "|a" * 40 + "\n" + "|-" * 40 + "\n" + "|b" * 40 + "\n\nend",
}
PARTS = [
    *("para text ", "**bold** ", "*em*", " `code` ", "\n", "\n\n", "  \n", "\t", "\r\n", "  ", "`"),
    *("- item\n", "  - nested\n", "1. one\n", "2. two\n", "10) ten\n", "* ", "+ p\n", "- [ ] t\n"),
    *("> quote ", "> > deep\n", "# H\n", "## Head *x*\n", "---\n", "===\n", "***", "    in\n"),
    *("```py\n", "```\n", "~~~\n", "x = 1\n", "- ```js\n  let a\n  ```\n", "  ~~~\n"),
    *("| a | b |\n", "|---|--:|\n", "| 1 | 2 | 3 |\n", "~~s~~", "\\*", "&amp;", "![i](http://p/q)"),
    *(
        "[l](http://x.y)",
        "[foo]: http://z\n",
        "[foo]",
        "https://a.b/c). ",
        "<b>x</b> ",
        "a<int> b;",
    ),
    *("\x00", "\ud800", "😀", "العربية ", "日本語"),
]


def streamed(text: str, sizes) -> RichText:
    view = RichText()
    at = 0
    while at < len(text):
        at += next(sizes)
        view.stream(text[:at])
        view.place(500)
    view.finish(text)
    while view.has_more:
        view.advance()
    view.place(500)
    return view


def random_sizes(seed: int):
    generator = random.Random(seed)
    while True:
        yield generator.choice((1, 2, 3, 8, 40, 700))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_streamed_is_drawn_at_once(name, drawn, dump):
    text = DOCUMENTS[name]
    whole = drawn(text)
    for seed in range(1 if len(text) > 2_000 else 4):
        part = streamed(text, random_sizes(seed))
        assert dump(part) == dump(whole), f"{name}, chunks of seed {seed}"
        assert part.height() == whole.height()


@pytest.mark.parametrize("name", ["lists", "tables", "quotes", "code", "html", "late reference"])
def test_streamed_is_drawn_at_once_to_the_pixel(name, drawn):
    text = DOCUMENTS[name]
    part = streamed(text, random_sizes(5))
    assert part.grab().toImage() == drawn(text).grab().toImage()


@settings(
    max_examples=80,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=20), seed=st.integers(0, 10_000))
@example(parts=["---\n", "**bold** ", "\r\n", "[foo]", "> quote "], seed=22)
def test_any_text_in_any_pieces(parts, seed, drawn, dump):
    text = "".join(parts)
    note(f"text {text!r}, chunks of seed {seed}")
    assert dump(streamed(text, random_sizes(seed))) == dump(drawn(text))


def test_settled_blocks_are_not_touched(qapp):
    """Nothing before the last settled block changes while a text grows, and not its text."""
    view = RichText()
    settled = "# Head\n\nFirst paragraph.\n\n- one\n- two\n\nSecond paragraph.\n\n"
    view.stream(settled + "The ")
    changes = []
    view.document().contentsChange.connect(lambda at, *_: changes.append(at))
    start = view.document().toPlainText().index("Second paragraph")
    text = settled + "The "
    for word in ("last ", "block ", "**grows** ", "on"):
        text += word
        view.stream(text)
    assert changes
    assert min(changes) >= start - 1  # the end of the block before it
    assert view.toPlainText()[start:].startswith("Second paragraph.\nThe last block grows on")


def test_open_code_is_only_appended(qapp):
    view = RichText()
    text = "```python\n" + "x = 1\n" * 50
    view.stream(text)
    removed = []
    view.document().contentsChange.connect(lambda _at, gone, _new: removed.append(gone))
    for piece in ("y = ", "2\n", "\n", "z"):
        text += piece
        view.stream(text)
    assert max(removed) <= len("x = 1\n")  # no more than the last line takes a new format
    view.finish(text)
    assert view.toPlainText().endswith("y = 2\n\nz")


def test_a_tick_draws_no_more_than_a_slice(qapp):
    view = RichText()
    text = "word\n\n" * 5_000
    view.set_markdown(text)
    ticks = 1
    while view.has_more:
        before = view.document().characterCount()
        view.advance()
        ticks += 1
        assert view.document().characterCount() - before <= richtext.SLICE + 1
    assert ticks >= len(text) / richtext.SLICE
    assert view.toPlainText().split() == text.split()
