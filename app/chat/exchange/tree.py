"""A foreign tree of messages as ours: only what people said and models answered, in turns.

Other programs keep a message for each step of an answer: thoughts, calls of tools, what they gave.
Here they are one answer.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from app.chat.exchange.values import Saved
from app.store.records import ConversationRecord, MessageRecord, PartRecord, State


@dataclass(frozen=True)
class Node:
    """`parts` empty: it is left out, what follows it stands where it stood."""

    key: str
    parent: str
    role: str
    parts: tuple[PartRecord, ...]
    created_at: float = 0.0
    model: str = ""


@dataclass(frozen=True)
class About:
    title: str
    created_at: float
    updated_at: float
    shown: str  # the key of the last message of the shown branch
    is_pinned: bool = False
    system_prompt: str = ""
    folder: str = ""


def saved(nodes: Iterable[Node], about: About) -> Saved | None:
    """None where nothing was said. Cycles and missing parents begin anew."""
    by_key = {node.key: node for node in nodes}
    order = _parents_first(by_key)
    heirs = _heirs(order)
    follow = Counter(heirs.get(node.parent, "") for node in order if node.parts)
    kept: dict[str, Node] = {}
    joined: dict[str, str] = {}  # {a message that became part of another: that one}
    for node in order:
        if not node.parts:
            continue
        parent = heirs.get(node.parent, "")
        parent = joined.get(parent, parent)
        above = kept.get(parent)
        if above is not None and above.role == node.role and follow[parent] == 1:
            kept[parent] = replace(
                above, parts=_together(above.parts, node.parts), model=node.model or above.model
            )
            joined[node.key], follow[parent] = parent, follow[node.key]
        else:
            kept[node.key] = replace(node, parent=parent)
    if not kept:
        return None
    numbers = {key: number for number, key in enumerate(kept, 1)}
    shown = heirs.get(about.shown, "")
    shown = joined.get(shown, shown)
    messages = tuple(
        MessageRecord(
            id=numbers[key],
            conversation_id=0,
            parent_id=numbers.get(node.parent),
            role=node.role,
            parts=node.parts,
            state=State.DONE,
            created_at=node.created_at or about.created_at,
            model=node.model if node.role == "assistant" else "",
        )
        for key, node in kept.items()
    )
    options = {"system_prompt": about.system_prompt} if about.system_prompt else {}
    conversation = ConversationRecord(
        id=0,
        title=about.title,
        created_at=about.created_at,
        updated_at=about.updated_at or about.created_at,
        options=options,
        leaf_id=numbers.get(shown, messages[-1].id),
        is_pinned=about.is_pinned,
    )
    return Saved(conversation, messages, about.folder)


def _parents_first(by_key: Mapping[str, Node]) -> list[Node]:
    """In the order of the file; what hangs on itself is cut off there."""
    order: list[Node] = []
    done: set[str] = set()
    for start in by_key.values():
        chain: list[Node] = []
        seen: set[str] = set()
        at: Node | None = start
        while at is not None and at.key not in done and at.key not in seen:
            seen.add(at.key)
            chain.append(at)
            at = by_key.get(at.parent)
        if at is not None and at.key in seen:
            chain[-1] = replace(chain[-1], parent="")
        for node in reversed(chain):
            done.add(node.key)
            order.append(node)
    return order


def _heirs(order: Iterable[Node]) -> dict[str, str]:
    """{key: the nearest kept message, itself or above it; "" for none}"""
    heirs: dict[str, str] = {}
    for node in order:
        heirs[node.key] = node.key if node.parts else heirs.get(node.parent, "")
    return heirs


def _together(
    above: tuple[PartRecord, ...], below: tuple[PartRecord, ...]
) -> tuple[PartRecord, ...]:
    """Texts that meet become one, with an empty line between."""
    joined = list(above)
    for part in below:
        last = joined[-1] if joined else None
        if last == part and part.text.endswith(" stood here.]"):
            continue  # said once of all that stood there
        if last is not None and last.kind == part.kind and not last.details and not part.details:
            joined[-1] = PartRecord(part.kind, f"{last.text}\n\n{part.text}")
        else:
            joined.append(part)
    return tuple(joined)
