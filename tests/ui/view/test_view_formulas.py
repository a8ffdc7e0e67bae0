"""Formulas are pictures on the line; what is no formula, or a bad one, stays as it was written."""

import random

import pytest

from app.ui import formulas, theme
from app.ui.formulas import OBJECT
from app.ui.richtext import RichText

FORMULAS = ["$x$", "$$x$$", r"\(x\)", r"\[x\]", r"$\frac{a_b}{c*d*e}$", "$$\nx = 1\n$$", r"$a\$b$"]
TEXTS = [
    "It cost $5 and $6.",
    "$5-$6",
    "US$5 or US$6",
    "`$x$`",
    "```\n$x$\n```",
    "$x",
    "$$x",
    r"\(x",
    "$ x $",
    "$x\ny$",
    r"\\(x\\)",
    "$$$$",
]
BAD = [
    r"$\frac{$",
    "$" + "{" * 30 + "x" + "}" * 30 + "$",
    "$" + "x" * 1_200 + "$",
    r"$\newcommand{\a}{\a\a}\a$",
]
MIXED = (
    "Energy $E = mc^2$ is **big**.\n\n$$\n\\sum_{i=0}^n i\n$$\n\n- item $\\alpha_1$ and $\\beta$\n"
    "- \\[x=\\frac{1}{2}\\] behind\n\n| a | b |\n|---|---|\n| $x$ | $5 |\n\n> $q$\n\n"
    "Bad $\\frac{$ end"
)


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_a_picture_and_is_copied_as_it_was_written(text, drawn):
    view = drawn(f"before {text} \U0001f600 **behind** $y$ end")
    assert view.toPlainText().count(OBJECT) == 2
    cursor = view.textCursor()
    cursor.setPosition(1)
    cursor.movePosition(cursor.MoveOperation.End, cursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)
    copied = view.createMimeDataFromSelection().text()
    assert OBJECT not in copied
    assert text in copied
    assert "$y$" in copied


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_no_formula_is_text(text, drawn):
    assert OBJECT not in drawn(text).toPlainText()


@pytest.mark.parametrize("text", BAD)
def test_a_bad_formula_shows_its_source(text, drawn):
    assert drawn(f"a {text} b").toPlainText().replace("\n", "") == f"a {text} b"


def test_a_growing_formula_is_source_until_it_is_closed(qapp):
    view = RichText()
    view.stream("It is $x^2")
    assert view.toPlainText() == "It is $x^2"
    view.stream("It is $x^2$ here")
    assert view.toPlainText() == f"It is {OBJECT} here"


@pytest.mark.parametrize("seed", range(6))
def test_streamed_is_drawn_at_once_to_the_pixel(seed, drawn, dump):
    generator, view, at = random.Random(seed), RichText(), 0
    while at < len(MIXED):
        at += generator.choice((1, 2, 7, 30))
        view.stream(MIXED[:at])
        view.place(500)
    view.finish(MIXED)
    view.place(500)
    whole = drawn(MIXED)
    assert dump(view) == dump(whole)
    assert view.grab().toImage() == whole.grab().toImage()


def test_letters_of_a_formula_follow_the_scheme_and_the_text_size(drawn, qapp):
    view = drawn("$x$")
    before = view.grab().toImage()
    height = view.document().size().height()
    theme.apply(qapp, theme.DARK)
    view.redraw()
    view.place(500)
    assert view.grab().toImage() != before
    theme.set_text_scale(200)
    view.redraw()
    view.place(500)
    assert view.document().size().height() > 1.5 * height


def test_a_formula_stands_on_the_baseline(drawn):
    """What reaches below the line of the letters is no more than the letters' own descent."""
    view = drawn(r"a $\frac{x}{y}$ b")
    tall = view.document().firstBlock().layout().lineAt(0)
    found = formulas.picture(r"\frac{x}{y}", theme.reading_px(), "#1a1f21", False)
    assert found.depth > 0
    assert tall.descent() >= found.depth - 1
    assert tall.ascent() >= found.size.height() - found.depth - 1
