"""The options of a chat: how its answers are written.

Tables of options make the rows; the rows themselves are in option_rows.py. A value that equals the
model's default is stored as "not chosen" (None), so that another model brings its own default.
"""

from dataclasses import fields, replace
from typing import Any

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from app.chat.messages import Options
from app.chat.options import conflicts, grammar_problem
from app.ui import theme
from app.ui.controls import HLine, Label, Segmented, box, button
from app.ui.message_parts import Disclosure
from app.ui.option_rows import (
    Choice,
    ChoiceRow,
    NumberRow,
    OptionRow,
    SeedRow,
    SwitchRow,
    TagsRow,
    Value,
)
from app.ui.presets import CUSTOM, PRESETS, preset_of
from app.ui.theme import BODY, S3, S4, SMALL, font

CHOICES = (
    Choice(
        "temperature",
        "Temperature",
        "Lower is more predictable, higher is more varied. 0 always takes the likeliest word.",
        0,
        2,
        0.05,
        2,
        has_slider=True,
    ),
    Choice(
        "top_p",
        "Top-p",
        "Keeps the likeliest words that together reach this share.",
        0.01,
        1,
        0.01,
        2,
        has_slider=True,
    ),
    Choice(
        "top_k",
        "Top-k",
        "Keeps only this many of the likeliest words. 0 means no limit.",
        0,
        200,
        1,
        has_slider=True,
    ),
    Choice(
        "repetition_penalty",
        "Repetition penalty",
        "Above 1 makes words less likely once they have been used.",
        1,
        2,
        0.01,
        2,
        has_slider=True,
    ),
    Choice(
        "longest_answer",
        "Longest answer",
        "Stops after this many tokens. A token is about three quarters of a word.",
        1,
        131_072,
        64,
    ),
)
MORE_CHOICES = (
    Choice(
        "min_p",
        "Min-p",
        "Drops words that are less than this share as likely as the likeliest one.",
        0,
        1,
        0.01,
        2,
        has_slider=True,
    ),
    Choice(
        "no_repeat_ngram_size",
        "No repeated run of",
        "No run of so many tokens comes twice. 0 means no limit.",
        0,
        32,
        1,
    ),
    Choice(
        "shortest_answer",
        "Shortest answer",
        "The answer does not end before it has this many tokens.",
        0,
        131_072,
        16,
    ),
    Choice(
        "beams",
        "Answers tried at once",
        "Above 1 several answers are tried and the likeliest is kept; it appears at the end.",
        1,
        16,
        1,
    ),
    Choice(
        "length_penalty",
        "Length penalty",
        "Above 1 the longer of the answers that are tried win, below 1 the shorter.",
        0,
        4,
        0.1,
        1,
    ),
)
OF_THE_MODEL = (
    "temperature",
    "top_p",
    "top_k",
    "repetition_penalty",
    "min_p",
    "no_repeat_ngram_size",
)
PROMPT_HELP = "Sent before every turn. Sets the voice and the rules."
CHECK_AFTER_MS = 300
GRAMMAR_HELP = "The JSON schema, or the regular expression, that the whole answer must fit."


class OptionsTab(QWidget):
    options_changed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._options, self._defaults = Options(), Options()
        self._is_explaining = False
        self.prompt = QPlainTextEdit()
        self.prompt.setObjectName("field")  # the name that the style sheet dresses
        self.prompt.setFont(font(BODY))
        self.prompt.setFixedHeight(theme.u(84))
        self.prompt.setTabChangesFocus(True)
        self.prompt.setAccessibleName("System prompt")
        self.prompt.setPlaceholderText("For example: answer briefly, in plain words.")
        self.prompt_tokens = Label("", SMALL, "muted")
        self._prompt_row = OptionRow("System prompt", PROMPT_HELP, self.prompt_tokens)
        self.own_presets = button("Your presets…", "flat")
        self.preset = Segmented(
            [(word, None) for word in (*(p.name for p in PRESETS), "Custom")], CUSTOM, "Preset"
        )
        self.numbers = {c.name: NumberRow(c) for c in (*CHOICES, *MORE_CHOICES)}
        self.seed = SeedRow()
        self.overflow = ChoiceRow(
            "overflow",
            "When the memory is full",
            "Ask each time, forget the oldest turns by itself, or stop.",
            {"ask": "Ask", "forget": "Forget oldest", "stop": "Stop"},
        )
        self.stops = TagsRow(
            "stop_strings",
            "Stop strings",
            "The answer ends before one of these. \\n is a new line.",
            "Add a text, then Enter",
        )
        self.banned = TagsRow(
            "banned",
            "Banned words",
            "Never written, in whatever letters and also inside longer words.",
            "Add a word, then Enter",
        )
        self.form = ChoiceRow(
            "answer_format",
            "Form of the answer",
            "Free text, any JSON, JSON that fits a schema, or text that fits an expression.",
            {"text": "Text", "json": "JSON", "json_schema": "Schema", "regex": "Expression"},
        )
        self.grammar = QPlainTextEdit()
        self._grammar_row = OptionRow("Schema or expression", GRAMMAR_HELP)
        self.grammar_problem = Label("", SMALL, "danger", wrap=True)
        self.grammar_problem.hide()
        self._grammar_timer = QTimer(self, singleShot=True, interval=CHECK_AFTER_MS)
        self._grammar_timer.timeout.connect(self._check_grammar)
        self.guesses = SwitchRow(
            "guesses_ahead",
            "Guess ahead",
            "Faster where an answer repeats what was said. It is chosen as likely as without.",
        )
        self.thinks = SwitchRow(
            "thinks", "Think first", "Whether the model thinks before it answers, if it can."
        )
        self.more = Disclosure("filter")
        self.more.setObjectName("more-options")
        self._more = QWidget()
        self._build()
        self.prompt.textChanged.connect(self._on_prompt)
        self._prompt_row.reset_requested.connect(self.prompt.clear)
        for row in self.numbers.values():
            row.chosen.connect(self._on_number)
        for other in (self.overflow, self.stops, self.banned, self.form, self.guesses, self.thinks):
            other.chosen.connect(self._on_value)
        self.grammar.textChanged.connect(self._on_grammar)
        self._grammar_row.reset_requested.connect(self.grammar.clear)
        self.preset.changed.connect(self._on_preset)
        self.more.toggled.connect(self._on_more)
        self.seed.chosen.connect(self._on_seed)
        self._on_more(False)
        self._show()

    def _build(self) -> None:
        note = Label(
            "For this chat, from the next answer on. While one is written, from its next token.",
            SMALL,
            "muted",
            wrap=True,
        )
        rows = [
            box("v", note, margins=(20, 2, S4, 4)),
            HLine(),
            self._prompt_row,
            box("h", self.prompt, margins=(20, 0, S4, 4)),
            HLine(),
            box("h", self.preset, margins=(20, 2, S4, 2)),
            box("h", self.own_presets, "stretch", margins=(12, 0, S4, 0)),
            *[self.numbers[c.name] for c in CHOICES if c.has_slider],
            HLine(),
            *[self.numbers[c.name] for c in CHOICES if not c.has_slider],
            self.overflow,
            self.stops,
            self.banned,
            HLine(),
            box("h", self.more, "stretch", margins=(12, 0, S4, 0)),
            self._more,
            "stretch",
        ]
        self.grammar.setObjectName("field")
        self.grammar.setFont(font(SMALL, mono=True))
        self.grammar.setFixedHeight(theme.u(84))
        self.grammar.setTabChangesFocus(True)
        self.grammar.setAccessibleName("Schema or expression")
        more = [self.numbers[c.name] for c in MORE_CHOICES]
        box(
            "v",
            self.seed,
            *more,
            self.form,
            self._grammar_row,
            box("v", self.grammar, self.grammar_problem, margins=(20, 0, S4, 4)),
            self.guesses,
            self.thinks,
            spacing=7,
            into=self._more,
        )
        box("v", *rows, margins=(0, S3, 0, S3), spacing=7, into=self)

    def set_options(self, options: Options) -> None:
        self._options = options
        self._show()

    def options(self) -> Options:
        return self._options

    def set_prompt_tokens(self, count: int | None) -> None:
        """Of the system prompt, with what the template puts around it; None: not known now."""
        has_prompt = bool(self._options.system_prompt) and count is not None
        words = f"{count:,} token{'s' * (count != 1)}" if count is not None else ""
        self.prompt_tokens.setText(words if has_prompt else "")

    @Slot()
    def _check_grammar(self) -> None:
        """While it is typed: a sentence below it, and nothing is refused."""
        wants = self._options.answer_format in ("json_schema", "regex")
        has_text = bool(self._options.answer_grammar.strip())
        problem = grammar_problem(self._options) if wants and has_text else ""
        self.grammar_problem.setText(problem)
        self.grammar_problem.setVisible(bool(problem))

    def apply(self, options: Options) -> None:
        """As if a person had chosen each of them; the seed stays."""
        self._change(replace(options, seed=self._options.seed))
        self._show()

    def set_defaults(self, defaults: Options) -> None:
        """Those of the model that is loaded."""
        self._defaults = defaults
        self._show()

    def explain(self, is_explaining: bool) -> None:
        self._is_explaining = is_explaining
        for row in self._rows():
            row.help.setVisible(is_explaining)
        self._show_conflicts()

    def _rows(self) -> list[OptionRow]:
        single = (self.seed, self._prompt_row, self._grammar_row)
        several = (self.overflow, self.stops, self.banned, self.form, self.guesses, self.thinks)
        return [*self.numbers.values(), *single, *several]

    @property
    def changed_count(self) -> int:
        plain = Options(longest_answer=self._defaults.longest_answer)
        return sum(
            getattr(self._options, field.name) != getattr(plain, field.name)
            for field in fields(Options)
        )

    @Slot()
    def reset_all(self) -> None:
        self._options = Options(longest_answer=self._defaults.longest_answer)
        self._show()
        self.options_changed.emit(self._options)

    def _show(self) -> None:
        for choice in (*CHOICES, *MORE_CHOICES):
            default = getattr(self._defaults, choice.name)
            default = choice.low if default is None else default
            self.numbers[choice.name].set_value(getattr(self._options, choice.name), default)
        self.seed.set_value(self._options.seed)
        self.overflow.set_value(self._options.overflow)
        self.stops.set_value(self._options.stop_strings)
        self.banned.set_value(self._options.banned)
        self.form.set_value(self._options.answer_format)
        self.guesses.set_value(self._options.guesses_ahead, False)
        self.thinks.set_value(self._options.thinks, bool(self._defaults.thinks))
        if self.grammar.toPlainText() != self._options.answer_grammar:
            self.grammar.blockSignals(True)
            self.grammar.setPlainText(self._options.answer_grammar)
            self.grammar.blockSignals(False)
        self._grammar_row.set_changed(bool(self._options.answer_grammar), "none")
        self._follow()
        if self.prompt.toPlainText() != self._options.system_prompt:
            self.prompt.blockSignals(True)
            self.prompt.setPlainText(self._options.system_prompt)
            self.prompt.blockSignals(False)
        self._prompt_row.set_changed(bool(self._options.system_prompt), "none")

    def _follow(self) -> None:
        """What follows from the values together."""
        self.preset.set_current(preset_of(self._options))
        self._show_conflicts()
        self._grammar_timer.start()
        inside = [*(c.name for c in MORE_CHOICES), "seed", "answer_format", "guesses_ahead"]
        plain = Options()
        changed = sum(getattr(self._options, n) != getattr(plain, n) for n in inside)
        self.more.set_words(f"More options, {changed} changed" if changed else "More options")

    def _show_conflicts(self) -> None:
        """A row that does nothing as the others stand says which one rules it out."""
        off = conflicts(self._options, self._defaults)
        rows: dict[str, OptionRow] = {
            **self.numbers,
            "seed": self.seed,
            "guesses_ahead": self.guesses,
            "thinks": self.thinks,
            "answer_grammar": self._grammar_row,
        }
        for name, row in rows.items():
            row.set_ruled_out(off.get(name, ""), is_explaining=self._is_explaining)
        has_grammar = "answer_grammar" not in off
        self._grammar_row.setVisible(has_grammar)
        self.grammar.setVisible(has_grammar)
        self.thinks.setVisible(self._defaults.thinks is not None)

    def _change(self, options: Options) -> None:
        if options != self._options:
            self._options = options
            self._follow()
            self.options_changed.emit(options)

    @Slot(bool)
    def _on_more(self, is_open: bool) -> None:
        self._more.setVisible(is_open)
        self.more.set_words(self.more.text() or "More options")

    @Slot(int)
    def _on_preset(self, index: int) -> None:
        if index == CUSTOM:
            self.preset.set_current(preset_of(self._options))
            return
        preset = PRESETS[index]
        self._change(
            replace(
                self._options,
                temperature=preset.temperature,
                top_p=preset.top_p,
                top_k=preset.top_k,
            )
        )
        self._show()

    @Slot(str, object)
    def _on_value(self, name: str, value: Any) -> None:
        changed: dict[str, Any] = {name: value}
        self._change(replace(self._options, **changed))

    @Slot()
    def _on_grammar(self) -> None:
        text = self.grammar.toPlainText()
        self._grammar_row.set_changed(bool(text), "none")
        self._change(replace(self._options, answer_grammar=text))

    @Slot(str, object)
    def _on_number(self, name: str, value: Value) -> None:
        if value is None and name not in OF_THE_MODEL:
            value = getattr(self._defaults, name)
        changed: dict[str, Any] = {name: value}
        self._change(replace(self._options, **changed))

    @Slot(object)
    def _on_seed(self, seed: int | None) -> None:
        self._change(replace(self._options, seed=seed))

    @Slot()
    def _on_prompt(self) -> None:
        text = self.prompt.toPlainText()
        self._prompt_row.set_changed(bool(text), "none")
        self._change(replace(self._options, system_prompt=text))
