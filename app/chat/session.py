"""The chat with one loaded model: requests in, events out. Owns the Model and its Generator.

Knows nothing of threads: each method but `set_options` belongs to the thread that owns the model,
and each yield is where the work can be stopped. The invariant: whatever ends an answer (its end,
a stop, an error), the next request finds a usable session, and what is in the cache is described by
the generator's own sequence, so that only the tokens after the common beginning are read again.
"""

import gc
import json
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app import engine as og
from app.chat import options as chat_options
from app.chat import prompt as chat_prompt
from app.chat.context import common_prefix, room_for_answer
from app.chat.events import (
    Event,
    Failed,
    Finished,
    Load,
    Loaded,
    Loading,
    Piece,
    Prefill,
    Reply,
    Request,
    Unload,
)
from app.chat.messages import FinishReason, ModelInfo, Options, Stats
from app.chat.splitter import Span, Splitter
from app.engine.errors import ContextFullError, EngineError, OutOfMemoryError, Stopped
from app.engine.stop import Stop

log = logging.getLogger(__name__)

KEPT_ANSWERS = 200


class ChatSession:
    def __init__(self, engine: Any = og) -> None:
        """`engine` has the names of app.engine; tests hand over a smaller one."""
        self._engine = engine
        self._loaded: _LoadedModel | None = None
        self._generator: og.Generator | None = None
        self._wanted: Options | None = None  # set from another thread, read once per token
        self._written: dict[str, tuple[int, ...]] = {}  # answers as they were generated

    def handle(self, request: Request, stop: Stop) -> Iterator[Event]:
        """Answer any request; the last event is its one Finished or Failed."""
        if isinstance(request, Load):
            return self.load(request, stop)
        if isinstance(request, Unload):
            return self.unload(request)
        if isinstance(request, Reply):
            return self.reply(request, stop)
        raise NotImplementedError(type(request).__name__)

    def set_options(self, options: Options | None) -> None:
        """Change the answer that is being written, from its next token on. Any thread may call.

        None takes back a change that no token has seen yet.
        """
        self._wanted = options

    def close(self) -> None:
        """Give the memory back; harmless when nothing is loaded."""
        self._drop_generator()
        if self._loaded is not None:
            self._loaded.model.close()
        self._loaded = None
        gc.collect()

    # ---- the model

    def load(self, request: Load, stop: Stop) -> Iterator[Event]:
        """The old model is closed first: two of them may not fit into memory."""
        if stop.is_set():
            yield Finished(request.request_id, "stopped")
            return
        yield Loading(request.request_id, request.path)
        self.close()
        try:
            self._loaded = self._open(request.path, request.threads)
        except EngineError as error:
            self.close()
            yield _failed(request.request_id, error)
            return
        except MemoryError as error:
            self.close()
            log.warning("out of memory", exc_info=error)
            yield Failed(
                request.request_id,
                "There is not enough memory to load this model. Close other programs, or choose a"
                " smaller model.",
                kind="memory",
            )
            return
        except BaseException:
            self.close()
            raise
        if stop.is_set():  # a session that opens cannot be interrupted, so it is dropped
            self.close()
            yield Finished(request.request_id, "stopped")
            return
        yield Loaded(request.request_id, self._loaded.info)
        yield Finished(request.request_id)

    def unload(self, request: Unload) -> Iterator[Event]:
        self.close()
        yield Finished(request.request_id)

    def _open(self, path: str, threads: int) -> "_LoadedModel":
        config = self._engine.Config(path)
        if threads:
            options = {"intra_op_num_threads": threads}
            config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
        model: og.Model = self._engine.Model(config)
        tokenizer: og.Tokenizer = self._engine.Tokenizer(model)
        facts = model.config.model
        folder = Path(path)
        info = ModelInfo(
            path=path,
            name=(folder.parent if folder.suffix == ".onnx" else folder).name,
            device=model.device_type,
            context_length=facts.context_length,
            defaults=chat_options.defaults_of(model.config.search),
            has_chat_template=tokenizer.chat_template is not None,
        )
        ends = {int(token) for token in (*facts.eos_token_ids, *tokenizer.eos_token_ids)}
        return _LoadedModel(model, tokenizer, info, ends | chat_prompt.end_tokens(tokenizer))

    # ---- an answer

    def reply(self, request: Reply, stop: Stop) -> Iterator[Event]:
        if stop.is_set():
            yield Finished(request.request_id, "stopped")
            return
        if (loaded := self._loaded) is None:
            yield Failed(
                request.request_id, "No model is loaded. Choose one first.", kind="no model"
            )
            return
        if not os.path.exists(loaded.info.path):  # False too where nobody may look
            yield Failed(
                request.request_id,
                f"The folder of {loaded.info.name} was moved or deleted: {loaded.info.path}."
                " Put it back, or choose another model.",
                kind="model",
            )
            return
        try:
            yield from self._answer(request, stop, loaded)
        except EngineError as error:
            self._drop_generator()
            yield _failed(request.request_id, error)
        except chat_prompt.PromptError as error:
            yield Failed(request.request_id, str(error), kind="model")
        except MemoryError as error:
            self._drop_generator()
            log.warning("out of memory", exc_info=error)
            yield Failed(
                request.request_id,
                "There is not enough memory for this answer. Close other programs, shorten the"
                " chat, or choose a smaller model.",
                kind="memory",
            )
        except BaseException:
            self._drop_generator()
            raise
        finally:
            self._wanted = None

    def _answer(self, request: Reply, stop: Stop, loaded: "_LoadedModel") -> Iterator[Event]:
        info, tokenizer = loaded.info, loaded.tokenizer
        started = time.perf_counter()
        prompt = chat_prompt.build(
            request.messages, request.options.system_prompt, tokenizer, self._written
        )
        options = chat_options.filled(request.options, info.defaults)
        try:
            max_length = room_for_answer(
                len(prompt.token_ids),
                context_length=info.context_length,
                longest_answer=options.longest_answer,
            )
        except ContextFullError as error:  # the generator was not touched: it is kept
            yield _failed(request.request_id, error)
            return
        seed = chat_options.drawn_seed() if options.seed is None else options.seed
        search = chat_options.search_options(options) | {
            "max_length": max_length,
            "random_seed": seed,
        }
        generator = self._prepared(loaded.model, search, stop)
        kept = self._keep_common(generator, prompt.token_ids)
        stats = Stats(
            prompt_tokens=len(prompt.token_ids),
            kept_tokens=kept,
            seed=seed,
            context_length=info.context_length,
            options=search,
        )
        writing = _Writing(request.request_id, options, prompt, tokenizer)
        reason: FinishReason = "stopped"
        try:
            yield from self._read(request.request_id, generator, prompt.token_ids, kept)
            for token in self._tokens(
                generator, loaded, options, len(prompt.token_ids), stop, writing
            ):
                yield from writing.take(token)
                if writing.is_ended:
                    break
            reason = _reason(generator, stop, writing, info)
        except Stopped:
            pass
        finally:
            generator.use_stop(None)
        yield from writing.rest()
        self._remember(writing, tokenizer)
        yield Finished(request.request_id, reason, writing.stats(stats, started))

    def _prepared(self, model: og.Model, search: dict[str, Any], stop: Stop) -> og.Generator:
        """The generator with this turn's options, made anew when there is none."""
        if self._generator is None:
            params = self._engine.GeneratorParams(model)
            params.set_search_options(**search)
            self._generator = self._engine.Generator(model, params)
        else:
            self._generator.set_search_options(**search)
        generator: og.Generator = self._generator
        generator.use_stop(stop)
        return generator

    def _keep_common(self, generator: og.Generator, wanted: tuple[int, ...]) -> int:
        """Rewind to what the cache and the prompt share, less one token: its logits are needed."""
        kept = common_prefix(generator.get_sequence(0).tolist(), list(wanted))
        kept = min(kept, len(wanted) - 1)
        if kept < generator.token_count():
            generator.rewind_to(kept)
        return kept

    def _read(
        self, request_id: int, generator: og.Generator, token_ids: tuple[int, ...], kept: int
    ) -> Iterator[Event]:
        total = len(token_ids)
        yield Prefill(request_id, kept, total, kept)
        for done in generator.prefill(list(token_ids[kept:])):
            yield Prefill(request_id, kept + done, total, kept)

    def _tokens(
        self,
        generator: og.Generator,
        loaded: "_LoadedModel",
        options: Options,
        prompt_tokens: int,
        stop: Stop,
        writing: "_Writing",
    ) -> Iterator[int]:
        """One token after the other; an end token ends it and is neither yielded nor kept."""
        while not generator.is_done() and not stop.is_set():
            if (wanted := self._wanted) is not None:
                self._wanted = None
                options = _change(generator, loaded.info, options, wanted, prompt_tokens, writing)
                continue  # a shorter longest answer may end it here
            count = generator.token_count()
            generator.generate_next_token()
            token = int(generator.get_next_tokens()[0])
            if token in loaded.end_tokens:
                writing.has_end_token = True
                if generator.token_count() > count:  # an end token that the engine takes for text
                    generator.rewind_to(count)
                return
            yield token

    def _remember(self, writing: "_Writing", tokenizer: og.Tokenizer) -> None:
        """Keep the ids of an answer whose text is exactly theirs, for the next turn's prompt."""
        ids, text = tuple(writing.token_ids), writing.answer
        is_plain = tokenizer.special_token_ids.isdisjoint(ids)
        if text and is_plain and tokenizer.decode(list(ids)) == text:
            self._written.pop(text, None)
            self._written[text] = ids
            while len(self._written) > KEPT_ANSWERS:
                del self._written[next(iter(self._written))]

    def _drop_generator(self) -> None:
        self._written = {}
        if self._generator is not None:
            self._generator.close()
            self._generator = None


@dataclass(frozen=True)
class _LoadedModel:
    model: og.Model
    tokenizer: og.Tokenizer
    info: ModelInfo
    end_tokens: set[int]


class _Writing:
    """One answer as it grows: tokens to text, text to pieces, and what is counted on the way."""

    def __init__(
        self, request_id: int, options: Options, prompt: chat_prompt.Prompt, tokenizer: og.Tokenizer
    ) -> None:
        self._request_id = request_id
        self._prompt_stops = prompt.stop_strings
        self._stream = tokenizer.create_stream()
        self._splitter = Splitter(
            stop_strings=options.stop_strings + prompt.stop_strings,
            starts_in_thought=prompt.starts_in_thought,
        )
        self._unsent: list[int] = []
        self._first_at = self._last_at = 0.0
        self.token_ids: list[int] = []
        self.answer = ""
        self.has_end_token = False
        self.changed: dict[str, Any] = {}

    @property
    def is_ended(self) -> bool:
        """A stop string was written."""
        return self._splitter.is_stopped

    def set_stop_strings(self, stop_strings: tuple[str, ...]) -> None:
        self._splitter.stop_strings = tuple(filter(None, stop_strings)) + self._prompt_stops

    def take(self, token: int) -> Iterator[Piece]:
        self._last_at = time.perf_counter()
        self._first_at = self._first_at or self._last_at
        self.token_ids.append(token)
        self._unsent.append(token)
        yield from self._pieces(self._splitter.feed(self._stream.decode(token)))

    def rest(self) -> Iterator[Piece]:
        """What was held back, and tokens that gave no text."""
        if not self.is_ended:
            yield from self._pieces(self._splitter.feed(self._stream.flush()))
            yield from self._pieces(self._splitter.finish())
        if self._unsent:
            yield self._piece(Span(""))

    def stats(self, stats: Stats, started: float) -> Stats:
        written = len(self.token_ids)
        writing_s = self._last_at - self._first_at
        return replace(
            stats,
            new_tokens=written,
            first_token_s=self._first_at - started if written else 0.0,
            total_s=time.perf_counter() - started,
            tokens_per_second=(written - 1) / writing_s if writing_s else 0.0,
            options=stats.options | self.changed,
        )

    def _pieces(self, spans: list[Span]) -> Iterator[Piece]:
        for span in spans:
            if not span.is_thought:
                self.answer += span.text
            yield self._piece(span)

    def _piece(self, span: Span) -> Piece:
        ids, self._unsent = tuple(self._unsent), []
        return Piece(self._request_id, span.text, span.is_thought, ids)


def _change(
    generator: og.Generator,
    info: ModelInfo,
    options: Options,
    wanted: Options,
    prompt_tokens: int,
    writing: _Writing,
) -> Options:
    """Take over what changed in the options while the answer is being written."""
    new = chat_options.filled(wanted, info.defaults)
    search = chat_options.search_options(new)
    search["max_length"] = max(
        room_for_answer(
            prompt_tokens,
            context_length=info.context_length,
            longest_answer=new.longest_answer,
        ),
        generator.token_count(),
    )
    if new.seed is not None and new.seed != options.seed:
        search["random_seed"] = new.seed
    try:
        generator.set_search_options(**search)
    except EngineError as error:  # the answer goes on as it was; its options say so
        log.warning("options not changed: %s", error)
        return options
    writing.set_stop_strings(new.stop_strings)
    writing.changed = search
    return new


def _reason(
    generator: og.Generator, stop: Stop, writing: _Writing, info: ModelInfo
) -> FinishReason:
    if writing.has_end_token or writing.is_ended:
        return "end"
    if generator.token_count() >= info.context_length:
        return "context"
    return "stopped" if stop.is_set() else "length"


def _failed(request_id: int, error: EngineError) -> Failed:
    log.warning("%s", error, exc_info=error)
    kinds: list[tuple[type[EngineError], str]] = [
        (ContextFullError, "context"),
        (OutOfMemoryError, "memory"),
    ]
    kind = next((kind for cause, kind in kinds if isinstance(error, cause)), "model")
    return Failed(request_id, str(error), kind=kind)
