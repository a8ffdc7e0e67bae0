"""The chat templates of 70 models, as llama.cpp collects them: a plain chat, exactly as written."""

from pathlib import Path
from typing import Any

import pytest

from app.chat.messages import Message
from app.chat.prompt import PromptError, build

FOLDER = Path(__file__).parents[2] / "build" / "vocabularies"
# Those that want more than a chat has, and the word for it that a person is shown.
CANNOT = {"fireworks-ai-llama-3-firefunction-v2": "'functions' is undefined"}
CHATS = (
    [("user", "What is 2 + 2? <|im_end|>")],
    [("user", "What is 2 + 2?"), ("assistant", "  Four. "), ("user", "And {{ 3 }} + 3?")],
)


@pytest.fixture
def templates() -> dict[str, str]:
    if not FOLDER.exists():
        pytest.skip("the templates are missing: python packaging/setup/vocabularies.py")
    return {path.stem: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.jinja"))}


@pytest.mark.vocabularies
@pytest.mark.parametrize("system", ["", "You are brief."])
def test_a_plain_chat_arrives_as_it_was_written(
    templates: dict[str, str], fake: Any, system: str
) -> None:
    assert len(templates) == 70
    failed: dict[str, str] = {}
    for name, template in templates.items():
        for chat in CHATS:
            messages = [Message.of(role, text) for role, text in chat]
            try:
                prompt = build(messages, system, fake.Tokenizer(template))
            except PromptError as error:
                failed[name] = str(error)
                continue
            texts = [system, *(text for _, text in chat)] if system else [t for _, t in chat]
            found = [bytes(prompt.token_ids[s.start : s.stop]).decode() for s in prompt.spans]
            joined = "\n\n".join(texts[:2]) if system else ""
            # Some put the system's words at the head of the first message, some behind the last.
            assert sorted(found) in (sorted(texts), sorted([joined, *texts[2:]])), name
    assert failed.keys() == CANNOT.keys()
    for name, words in CANNOT.items():
        assert words in failed[name]


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{{ messages }}\n\n{% for x in missing %}{% endfor %}{% if", "in line 3"),
        ("one\ntwo {{ messages[0].content + 1 }}", "in line 2"),
    ],
)
def test_a_template_that_fails_says_where(fake: Any, template: str, words: str) -> None:
    with pytest.raises(PromptError) as caught:
        build([Message.of("user", "x")], "", fake.Tokenizer(template))
    assert words in str(caught.value.__cause__)
