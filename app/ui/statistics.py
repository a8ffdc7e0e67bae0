"""What made an answer, as facts in words. Pure."""

from typing import Any

from app.chat.messages import Options, Stats
from app.chat.options import from_record
from app.store.records import MessageRecord
from app.ui.chat_items import options_from_details, stats_of

REASONS = {
    "end": "The model ended it",
    "length": "Longest answer reached",
    "context": "The chat is as long as the model can read",
    "stopped": "Stopped by you",
}
LABELS = {
    "temperature": "Temperature",
    "top_p": "Top-p",
    "top_k": "Top-k",
    "min_p": "Min-p",
    "repetition_penalty": "Repetition penalty",
    "no_repeat_ngram_size": "No repeated runs of",
    "longest_answer": "Longest answer",
    "shortest_answer": "Shortest answer",
    "beams": "Answers tried",
    "length_penalty": "Length penalty",
    "stop_strings": "Stop strings",
    "banned": "Banned words",
    "answer_format": "Form of the answer",
    "answer_grammar": "Schema or expression",
    "system_prompt": "System prompt",
    "thinks": "Thinks first",
}
ALWAYS = ("temperature", "top_p", "top_k", "repetition_penalty", "longest_answer")
SAMPLING = ("temperature", "top_p", "top_k", "min_p")
LONGEST_VALUE = 120


def facts_of(record: MessageRecord) -> list[tuple[str, str]]:
    """(what, how much), in the order of reading."""
    details = record.details
    facts = [("Model", record.model)] if record.model else []
    if details.get("edited"):
        facts.append(("Written by", "you, in place of the model's answer"))
    stats = stats_of(record)
    if stats is not None:
        facts += _of_model(stats)
    if device := details.get("device"):
        facts.append(("Device", str(device)))
    if stats is not None:
        facts.append(("Adapter", "none"))
        facts += _of_options(stats)
        facts += _of_run(stats)
    if reason := REASONS.get(str(details.get("reason"))):
        facts.append(("Ended by", reason))
    if isinstance(verdict := details.get("replay"), str):
        facts.append(("Replay", verdict))
    return facts


def _of_model(stats: Stats) -> list[tuple[str, str]]:
    facts = [("Fingerprint", stats.fingerprint[:16])] if stats.fingerprint else []
    return facts + ([("Template", stats.template_hash[:16])] if stats.template_hash else [])


def _of_options(stats: Stats) -> list[tuple[str, str]]:
    """Those that say how it was written, and all that are not as they are by themselves."""
    samples = stats.options.get("do_sample") is not False
    sampling = [
        ("Seed", str(stats.seed)) if samples else ("Sampling", "off, the likeliest word each time")
    ]
    if not stats.chosen:
        return sampling + [
            (LABELS[name], f"{value:g}")
            for name in ALWAYS
            if isinstance(value := stats.options.get(name), int | float)
        ]
    chosen, usual = from_record(stats.chosen), Options()
    facts = []
    for name, label in LABELS.items():
        value = getattr(chosen, name)
        if name in SAMPLING and not samples:
            continue
        is_told = name in ALWAYS or value != getattr(usual, name)
        if is_told and (words := _words(value)):
            facts.append((label, words))
    return facts + sampling


def _of_run(stats: Stats) -> list[tuple[str, str]]:
    facts = [
        ("Prompt", f"{stats.prompt_tokens:,} tokens"),
        ("Kept from before", f"{stats.kept_tokens:,} of {stats.prompt_tokens:,} tokens"),
        ("Written", f"{stats.new_tokens:,} token" + "s" * (stats.new_tokens != 1)),
        ("Speed", f"{stats.tokens_per_second:.1f} tok/s"),
        ("First token after", f"{stats.first_token_s:.2f} s"),
        ("Time in all", f"{stats.total_s:.1f} s"),
    ]
    if stats.avoided:
        facts.append(("Banned words avoided", f"{stats.avoided:,}"))
    if stats.perplexity:
        facts.append(("Perplexity", f"{stats.perplexity:.2f}"))
    return facts


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(repr(each) for each in value)[:LONGEST_VALUE]
    if isinstance(value, int | float):
        return f"{value:g}"
    return "" if value is None else str(value)[:LONGEST_VALUE]


def options_to_replay(record: MessageRecord) -> Options | None:
    """Those that made the answer, with its seed; None where they were not kept."""
    stats = stats_of(record)
    if stats is None or not stats.chosen or record.details.get("edited"):
        return None
    return options_from_details({**stats.chosen, "seed": stats.seed})
