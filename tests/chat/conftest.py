"""A small true engine: bytes are tokens, and a script says what the model answers.

It keeps a sequence and a cache, counts what it reads, obeys stops and lengths as the real one does.
"""

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.chat.events import Event, Load, Reply
from app.chat.messages import Message, Options
from app.chat.session import ChatSession
from app.engine.chat_template import render
from app.engine.errors import ContextFullError, Stopped
from app.engine.stop import Stop

SPECIALS = ("<|im_start|>", "<|im_end|>", "<s>", "</s>", "[INST]", "[/INST]")
END = 256 + SPECIALS.index("<|im_end|>")

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


class ByteTokenizer:
    eos_token_ids = (END,)

    def __init__(
        self, chat_template: str | None = CHATML, specials: tuple[str, ...] = SPECIALS
    ) -> None:
        self.chat_template = chat_template
        self.specials = specials
        self.special_token_ids = frozenset(range(256, 256 + len(specials)))

    def encode(self, text: str) -> np.ndarray:
        ids: list[int] = []
        for piece in re.split("(" + "|".join(map(re.escape, self.specials)) + ")", text):
            if piece in self.specials:
                ids.append(256 + self.specials.index(piece))
            else:
                ids += piece.encode()
        return np.array(ids, np.int32)

    def encode_plain(self, text: str) -> np.ndarray:
        return np.array(list(text.encode()), np.int32)

    def decode(self, ids: list[int]) -> str:
        return bytes(i for i in ids if i < 256).decode(errors="replace")

    def update_options(self, **options: bool) -> None:
        """There is no token that it would put first."""

    def create_stream(self) -> SimpleNamespace:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        return SimpleNamespace(
            decode=lambda i: decoder.decode(bytes([i])) if i < 256 else "",
            flush=lambda: decoder.decode(b"", final=True),
        )

    def apply_chat_template(
        self,
        messages: str,
        template_str: str | None = None,
        tools: str | None = None,
        add_generation_prompt: bool = True,
        **extra: Any,
    ) -> str:
        return render(
            template_str or self.chat_template or "",
            json.loads(messages),
            tools=json.loads(tools) if tools else None,
            bos_token="<s>",
            eos_token="</s>",
            add_generation_prompt=add_generation_prompt,
            **extra,
        )


class FakeGenerator:
    """`answer(sequence)` is the model: the token that follows."""

    chunk = 16

    def __init__(self, model: "FakeModel", params: SimpleNamespace) -> None:
        self.model, self.options = model, dict(params.options)
        self.sequence: list[int] = []
        self.read: list[int] = []  # tokens given to the model, each time again
        self.seen_options: list[dict[str, Any]] = []
        self.is_ended = False
        self.is_closed = False
        self.stop: Stop | None = None
        self.banned: frozenset[int] = frozenset()

    def use_stop(self, stop: Stop | None) -> None:
        self.stop = stop

    def set_search_options(self, **options: Any) -> None:
        self.options |= options
        self.seen_options.append(options)

    def set_guidance(self, kind: str, data: str, *, start: int | None = None) -> None:
        self.guidance = kind, data, start

    def set_speculative_options(self, **options: Any) -> None:
        self.speculation = options

    def set_banned_tokens(self, ids: Iterable[int]) -> None:
        self.banned = frozenset(ids)

    def get_logits(self) -> np.ndarray:
        """As good as certain of the next token; the others in order."""
        self.is_ended = False
        row = -np.arange(262, dtype=np.float32)
        row[self.model.answer(self.sequence)] = 20.0
        return row[None]

    def prefill(self, tokens: list[int]) -> Iterator[int]:
        if len(tokens) + len(self.sequence) > self.options["max_length"]:
            raise ContextFullError(
                "too long",
                needed=len(tokens) + len(self.sequence),
                limit=self.options["max_length"],
            )
        for start in range(0, len(tokens), self.chunk):
            piece = tokens[start : start + self.chunk]
            self._run()
            self.sequence += piece
            self.read += piece
            self.is_ended = False
            yield start + len(piece)

    def generate_next_token(self) -> None:
        assert not self.is_done()
        self._run()
        token = self.model.answer(self.sequence)
        while token in self.banned:
            token = (token + 1) % 256
        self.next = token
        if token in self.model.config.model.eos_token_ids:
            self.is_ended = True
        else:
            self.sequence.append(token)

    def _run(self) -> None:
        assert not self.is_closed
        if self.stop is not None and self.stop.is_set():
            raise Stopped
        self.model.before_run()

    def is_done(self) -> bool:
        return self.is_ended or len(self.sequence) >= self.options["max_length"]

    def get_next_tokens(self) -> np.ndarray:
        return np.array([self.next], np.int32)

    def get_sequence(self, index: int) -> np.ndarray:
        return np.array(self.sequence, np.int32)

    def token_count(self) -> int:
        return len(self.sequence)

    def rewind_to(self, length: int) -> None:
        assert length <= len(self.sequence)
        del self.sequence[length:]
        self.is_ended = False

    def close(self) -> None:
        self.is_closed = True


class FakeModel:
    device_type = "CPU"

    def __init__(self, path: str, answer: Callable[[list[int]], int], context_length: int) -> None:
        self.path, self.answer = path, answer
        self.before_run: Callable[[], None] = lambda: None
        self.is_closed = False
        self.config = SimpleNamespace(
            model=SimpleNamespace(
                context_length=context_length,
                eos_token_ids=(END,),
                decoder=SimpleNamespace(num_hidden_layers=1, num_key_value_heads=1, head_size=8),
            ),
            search=SimpleNamespace(
                do_sample=True,
                temperature=0.7,
                top_p=0.9,
                top_k=40,
                min_p=0.0,
                repetition_penalty=1.0,
                no_repeat_ngram_size=0,
            ),
        )

    def close(self) -> None:
        self.is_closed = True


def scripted(*texts: str, start: str = "<|im_start|>assistant\n") -> Callable[[list[int]], int]:
    """A model that says the first text in answer to the first question, and so on.

    A pure function of the sequence, as a model is: which answer, by the number of openings; which
    token, by what stands after the last one.
    """
    opening = ByteTokenizer().encode(start).tolist()
    answers = [ByteTokenizer().encode(text).tolist() for text in texts]

    def answer(sequence: list[int]) -> int:
        starts = [
            at + len(opening)
            for at in range(len(sequence) - len(opening) + 1)
            if sequence[at : at + len(opening)] == opening
        ]
        said = sequence[starts[-1] :]
        wanted = answers[min(len(starts), len(answers)) - 1]
        return wanted[len(said)] if len(said) < len(wanted) else END

    return answer


class FakeEngine:
    """Stands for the module app.engine. `models` are those that were opened."""

    Generator = FakeGenerator

    def __init__(
        self,
        answer: Callable[[list[int]], int],
        *,
        context_length: int = 4096,
        tokenizer: ByteTokenizer | None = None,
    ) -> None:
        self.answer, self.context_length = answer, context_length
        self.tokenizer = tokenizer or ByteTokenizer()
        self.models: list[FakeModel] = []

    def Config(self, path: str) -> str:
        return path

    def Model(self, path: str) -> FakeModel:
        self.models.append(FakeModel(path, self.answer, self.context_length))
        return self.models[-1]

    def Tokenizer(self, model: FakeModel) -> ByteTokenizer:
        return self.tokenizer

    def GeneratorParams(self, model: FakeModel) -> SimpleNamespace:
        params = SimpleNamespace(options={})
        params.set_search_options = params.options.update
        return params


@pytest.fixture
def fake() -> SimpleNamespace:
    """The classes above, and two helpers: tests share them by this fixture."""
    return SimpleNamespace(
        Engine=FakeEngine,
        Generator=FakeGenerator,
        Tokenizer=ByteTokenizer,
        scripted=scripted,
        END=END,
        SPECIALS=SPECIALS,
    )


@pytest.fixture
def open_session(tmp_path: Path) -> Iterator[Callable[..., ChatSession]]:
    """A session with a scripted model in it."""
    sessions: list[ChatSession] = []

    def open_it(*texts: str, **options: Any) -> ChatSession:
        start = options.pop("start", "<|im_start|>assistant\n")
        engine = FakeEngine(scripted(*texts, start=start), **options)
        session = ChatSession(engine)
        sessions.append(session)
        events = list(session.load(Load(0, str(tmp_path)), Stop()))
        assert type(events[-1]).__name__ == "Finished"
        return session

    yield open_it
    for session in sessions:
        session.close()


@pytest.fixture
def ask() -> Callable[..., list[Event]]:
    """Texts in turn, the person's first; the events of the answer to the last."""

    def ask_it(
        session: ChatSession, *texts: str, stop: Stop | None = None, **options: Any
    ) -> list[Event]:
        messages = tuple(
            Message.of("assistant" if index % 2 else "user", text)
            for index, text in enumerate(texts)
        )
        return list(session.reply(Reply(1, messages, Options(**options)), stop or Stop()))

    return ask_it
