"""What made an answer, in figures: opens at the button of its action row."""

from PySide6.QtCore import Slot
from PySide6.QtGui import QGuiApplication

from app.store.records import MessageRecord
from app.ui import theme
from app.ui.chat_items import stats_of
from app.ui.controls import Label, Popover, box, button
from app.ui.theme import BODY, SMALL

REASONS = {
    "end": "The model ended it",
    "length": "Longest answer reached",
    "context": "The chat is as long as the model can read",
    "stopped": "Stopped by you",
}
SEARCH = {
    "temperature": "Temperature",
    "top_p": "Top-p",
    "top_k": "Top-k",
    "repetition_penalty": "Repetition penalty",
}


def facts_of(record: MessageRecord) -> list[tuple[str, str]]:
    """(what, how much), in the order of reading."""
    stats = stats_of(record)
    facts = [("Model", record.model)] if record.model else []
    if device := record.details.get("device"):
        facts.append(("Device", str(device)))
    if stats is not None:
        facts += [
            ("Written", f"{stats.new_tokens:,} tokens"),
            ("Speed", f"{stats.tokens_per_second:.1f} tok/s"),
            ("First token after", f"{stats.first_token_s:.2f} s"),
            ("Time in all", f"{stats.total_s:.1f} s"),
            ("Prompt", f"{stats.prompt_tokens:,} tokens"),
            ("Kept from before", f"{stats.kept_tokens:,} tokens"),
            ("Seed", str(stats.seed)),
        ]
        for name, label in SEARCH.items():
            if isinstance(value := stats.options.get(name), int | float):
                facts.append((label, f"{value:g}"))
        if stats.options.get("do_sample") is False:
            facts = [fact for fact in facts if fact[0] not in ("Temperature", "Seed")]
            facts.append(("Sampling", "off, the likeliest word each time"))
    if reason := REASONS.get(str(record.details.get("reason"))):
        facts.append(("Ended by", reason))
    return facts


class StatisticsCard(Popover):
    def __init__(self, record: MessageRecord) -> None:
        super().__init__(theme.u(300))
        facts = facts_of(record)
        self.setAccessibleName("What made this answer")
        self.setAccessibleDescription(", ".join(f"{what} {much}" for what, much in facts))
        self.body.setSpacing(4)
        self.body.addWidget(Label("What made this answer", BODY, "text", 600))
        for what, much in facts:
            value = Label(much, SMALL, "text", 500, wrap=True)
            key = Label(what, SMALL, "muted")
            key.setFixedWidth(theme.u(116))
            self.body.addLayout(box("h", key, (value, 1), spacing=8))
        self._facts = facts
        copy = button("Copy", "", "copy")
        copy.clicked.connect(self._copy)
        self.body.addSpacing(4)
        self.body.addLayout(box("h", "stretch", copy))

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText("\n".join(f"{w}: {m}" for w, m in self._facts))
        self.close()
