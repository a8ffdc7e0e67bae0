"""Rows of the store as what the transcript shows. Pure functions."""

from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from app.chat.conversations import branch
from app.chat.messages import Options, Stats
from app.chat.options import from_record, to_record
from app.store.records import MessageRecord, PartRecord, State
from app.ui.answer import Answer
from app.ui.items import STATS_SEPARATOR, Attachment, Item


def options_to_details(options: Options) -> dict[str, Any]:
    return to_record(options)


def options_from_details(details: dict[str, Any]) -> Options:
    """What a chat was given; what this version does not know, or has of another kind, is left."""
    return from_record(details)


def stats_to_details(stats: Stats) -> dict[str, Any]:
    return asdict(stats)


def stats_from_details(details: dict[str, Any]) -> Stats:
    known = {field.name for field in fields(Stats)}
    return Stats(**{name: value for name, value in details.items() if name in known})


def stats_of(record: MessageRecord) -> Stats | None:
    stats = record.details.get("stats")
    return stats_from_details(stats) if isinstance(stats, dict) else None


def stats_line(stats: Stats) -> str:
    figures = [f"{stats.tokens_per_second:.0f} tok/s"] if stats.tokens_per_second else []
    figures.append(f"{stats.new_tokens:,} token" + "s" * (stats.new_tokens != 1))
    if stats.first_token_s:
        figures.append(f"{short_time(stats.first_token_s)} first token")
    if stats.avoided:
        figures.insert(0, avoided_words(stats.avoided))
    return STATS_SEPARATOR.join(figures)


def short_time(seconds: float) -> str:
    """0.04 as "40 ms", 1.26 as "1.3 s"."""
    if seconds < 0.0995:
        return f"{max(1, round(seconds * 1000))} ms"
    return f"{seconds:.1f} s"


def avoided_words(count: int) -> str:
    """Banned words that were turned away."""
    return f"{count:,} avoided"


def kept_line(stats: Stats) -> str:
    """What of the prompt needed no reading again."""
    if not stats.kept_tokens:
        return ""
    return f"kept {stats.kept_tokens:,} of {stats.prompt_tokens:,} tokens"


CUT_OFF = (State.STOPPED, State.INTERRUPTED, State.LENGTH)


def can_continue(record: MessageRecord) -> bool:
    """An answer that was cut off before its end, and that has one word at least."""
    return record.role == "assistant" and record.state in CUT_OFF and bool(record.parts)


def context_used(shown: Sequence[MessageRecord]) -> int:
    """Tokens of the branch as the model last counted them."""
    for record in reversed(shown):
        stats = stats_of(record)
        if stats is not None:
            return stats.prompt_tokens + stats.new_tokens
    return 0


def text_of(parts: Sequence[PartRecord], kind: str = "text") -> str:
    return "".join(part.text for part in parts if part.kind == kind)


def parts_until(
    parts: Sequence[PartRecord], start: int, *, is_thought: bool
) -> tuple[PartRecord, ...]:
    """The answer up to a place in its text or in its thought, in units of UTF-16."""
    kept: list[PartRecord] = []
    for part in parts:
        if (part.kind == "thought" and is_thought) or (part.kind == "text" and not is_thought):
            data = part.text.encode("utf-16-le", "surrogatepass")
            text = data[: 2 * start].decode("utf-16-le", "ignore")
            start = max(0, start - len(data) // 2)
            kept += [replace(part, text=text)] if text else []
        elif part.kind != "text":
            kept.append(part)
    return tuple(kept)


def families(records: Sequence[MessageRecord]) -> dict[int | None, list[int]]:
    """Ids of the versions that stand beside each other, oldest first, by their parent."""
    found: dict[int | None, list[int]] = {}
    for record in records:
        found.setdefault(record.parent_id, []).append(record.id)
    return found


def item_of(record: MessageRecord, family: Sequence[int], *, is_last: bool) -> Item:
    """`family` are the versions of the message, itself among them."""
    stats = stats_of(record)
    seconds = sum(part.details.get("seconds", 0.0) for part in record.parts)
    return Item(
        key=record.id,
        role="user" if record.role == "user" else "assistant",
        text=text_of(record.parts),
        thought=text_of(record.parts, "thought"),
        thought_seconds=seconds,
        model=record.model,
        state=str(record.state),
        stats=stats_line(stats) if stats and stats.new_tokens else "",
        branch=(family.index(record.id) + 1, len(family)) if len(family) > 1 else None,
        status=_ending(record),
        is_last=is_last,
        is_pinned=record.is_pinned,
        is_edited=bool(record.details.get("edited")),
        can_continue=can_continue(record),
        kept=kept_line(stats) if stats else "",
        attachments=tuple(attachment_of(part) for part in record.parts if part.kind == "file"),
    )


def attachment_of(part: PartRecord) -> Attachment:
    tokens, size = part.details.get("tokens"), part.details.get("size_bytes")
    note = f"{tokens:,} tokens" if isinstance(tokens, int) else ""
    return Attachment(
        str(part.details.get("name", "file")),
        short_size(size) if isinstance(size, int) else "",
        note,
    )


def short_size(size_bytes: int) -> str:
    """1536 as "1.5 KB"."""
    size, unit = float(size_bytes), "bytes"
    for larger in ("KB", "MB", "GB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"


def _ending(record: MessageRecord) -> str:
    """How the answer ended, where its state alone would not say it."""
    if record.state is State.LENGTH and record.details.get("reason") == "context":
        return "Stopped: the chat is as long as the model can read"
    if record.state is State.LENGTH:
        return "Stopped at the longest answer"
    if record.state is State.FAILED:
        return str(record.details.get("error", ""))
    return ""


def written_over(item: Item, answer: Answer) -> Item:
    """The item of an answer that is being written, as far as it came."""
    return replace(
        item,
        text=answer.text,
        thought=answer.thought,
        thought_seconds=answer.thought_seconds,
        is_thinking=answer.is_thinking,
        state=str(State.WRITING),
        status=answer.status,
        can_continue=False,
        stats=avoided_words(answer.avoided) if answer.avoided else "",
    )


def items_of(
    records: Sequence[MessageRecord],
    leaf_id: int | None,
    answer: Answer | None = None,
    memory_start: int | None = None,
) -> list[Item]:
    """The branch that ends in `leaf_id`, root first."""
    shown = branch(list(records), leaf_id) if leaf_id is not None else []
    versions = families(records)
    items = [item_of(r, versions[r.parent_id], is_last=r is shown[-1]) for r in shown]
    for place, item in enumerate(items):
        if place and item.key == memory_start:
            items[place] = replace(item, begins_memory=True)
    if answer is not None:
        items = [
            written_over(item, answer) if item.key == answer.message_id else item for item in items
        ]
    return items
