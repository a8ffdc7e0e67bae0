"""The chat with one loaded model: requests in, events out. Owns the Model and its Generators.

Knows nothing of threads: each method but `set_options` belongs to the thread that owns the model,
and each yield is where the work can be stopped. The invariant: whatever ends an answer (its end,
a stop, an error), the next request finds a usable session, and what is in a cache is described by
its generator's own sequence, so that only the tokens after the common beginning are read again.
"""

import gc
import logging
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from app import engine as og
from app.chat import options as chat_options
from app.chat import prompt as chat_prompt
from app.chat.answering import Answering, Plan
from app.chat.caches import Caches
from app.chat.context import fitted, is_remembered, remembered, room_for_answer
from app.chat.events import (
    Count,
    Counted,
    Event,
    Failed,
    Finished,
    Forgot,
    Inspect,
    Load,
    Loaded,
    Loading,
    Preview,
    Previewed,
    Reply,
    Request,
    Unload,
)
from app.chat.inspecting import inspect
from app.chat.loaded import LoadedModel, open_model
from app.chat.messages import ContextUse, Message, Options
from app.chat.options import OptionError
from app.chat.prompt import Prompt, PromptError
from app.chat.writing import Writing
from app.engine.errors import ContextFullError, EngineError, OutOfMemoryError
from app.engine.stop import Stop

log = logging.getLogger(__name__)

KEPT_ANSWERS = 200


class ChatSession:
    def __init__(self, engine: Any = og) -> None:
        """`engine` has the names of app.engine; tests hand over a smaller one."""
        self._engine = engine
        self._loaded: LoadedModel | None = None
        self._caches = Caches(engine)
        self._wanted: Options | None = None  # set from another thread, read once per token
        self._written: dict[str, tuple[int, ...]] = {}  # answers as they were generated

    def handle(self, request: Request, stop: Stop) -> Iterator[Event]:
        """Answer any request; the last event is its one Finished or Failed."""
        match request:
            case Load():
                return self.load(request, stop)
            case Unload():
                return self.unload(request)
            case Reply():
                return self.reply(request, stop)
            case Inspect():
                return self._guarded(request, stop, self._inspect)
            case Count():
                return self._guarded(request, stop, self._count)
            case Preview():
                return self._guarded(request, stop, self._preview)

    def set_options(self, options: Options | None) -> None:
        """Change the answer that is being written, from its next token on. Any thread may call.

        None takes back a change that no token has seen yet.
        """
        self._wanted = options

    def close(self) -> None:
        """Give the memory back; harmless when nothing is loaded."""
        self._drop_caches()
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
            self._loaded = open_model(self._engine, request.path, request.threads)
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

    # ---- an answer

    def reply(self, request: Reply, stop: Stop) -> Iterator[Event]:
        return self._guarded(request, stop, self._answer)

    def _answer(self, request: Reply, stop: Stop, loaded: LoadedModel) -> Iterator[Event]:
        started = time.perf_counter()
        options = chat_options.settled(request.options, loaded.info.defaults)
        build = self._builder(request.options, loaded, request.start, request.start_text)
        prompt, first = fitted(
            build,
            request.messages,
            request.first,
            options=options,
            context_length=loaded.info.context_length,
        )
        # Said before the first word of the answer, where a chat that does not fit ends.
        room_for_answer(
            len(prompt),
            context_length=loaded.info.context_length,
            longest_answer=options.longest_answer,
        )
        if first != request.first:
            before = build(remembered(request.messages, request.first))
            yield Forgot(request.request_id, first, len(before) - len(prompt))
        seed = chat_options.drawn_seed() if options.seed is None else options.seed
        answering = Answering(
            Plan(request, prompt, options, seed, started),
            loaded,
            self._caches,
            stop,
            self._take_wanted,
        )
        for event in answering.run():
            if isinstance(event, Finished):  # first: who sees it may ask for the next at once
                self._remember(answering.writing, loaded.tokenizer)
            yield event

    def _take_wanted(self) -> Options | None:
        wanted, self._wanted = self._wanted, None
        return wanted

    def _builder(
        self,
        options: Options,
        loaded: LoadedModel,
        start: tuple[int, ...] = (),
        start_text: str = "",
        *,
        asks: bool = True,
    ) -> Callable[[tuple[Message, ...]], Prompt]:
        """Without `asks` the last message may be an answer too."""
        settled = chat_options.settled(options, loaded.info.defaults)

        def build(messages: tuple[Message, ...]) -> Prompt:
            return chat_prompt.build(
                messages,
                options.system_prompt,
                loaded.tokenizer,
                self._written,
                thinks=settled.thinks,
                start=start,
                start_text=start_text,
                asks=asks or not messages or messages[-1].role == "user",
            )

        return build

    def _guarded(
        self,
        request: Any,
        stop: Stop,
        act: Callable[[Any, Stop, LoadedModel], Iterator[Event]],
    ) -> Iterator[Event]:
        """What every request to the model has in common: how it can fail."""
        request_id = request.request_id
        goes_on = isinstance(request, Reply) and (request.start or request.start_text)
        if stop.is_set() and not goes_on:  # what stands of an answer is repeated in any case
            yield Finished(request_id, "stopped")
            return
        if (loaded := self._loaded) is None:
            yield Failed(request_id, "No model is loaded. Choose one first.", kind="no model")
            return
        if not os.path.exists(loaded.info.path):  # False too where nobody may look
            yield Failed(
                request_id,
                f"The folder of {loaded.info.name} was moved or deleted: {loaded.info.path}."
                " Put it back, or choose another model.",
                kind="model",
            )
            return
        try:
            yield from act(request, stop, loaded)
        except OptionError as error:
            yield Failed(request_id, str(error), kind="options")
        except PromptError as error:
            yield Failed(request_id, str(error), kind="model")
        except ContextFullError as error:  # no generator was touched: they are kept
            yield _failed(request_id, error)
        except EngineError as error:
            self._drop_caches()
            yield _failed(request_id, error)
        except MemoryError as error:
            self._drop_caches()
            log.warning("out of memory", exc_info=error)
            yield Failed(
                request_id,
                "There is not enough memory for this answer. Close other programs, shorten the"
                " chat, or choose a smaller model.",
                kind="memory",
            )
        except BaseException:
            self._drop_caches()
            raise
        finally:
            self._wanted = None

    # ---- looking

    def _inspect(self, request: Inspect, stop: Stop, loaded: LoadedModel) -> Iterator[Event]:
        build = self._builder(request.options, loaded, request.token_ids)
        prompt = build(remembered(request.messages, request.first))
        return inspect(request.request_id, prompt, loaded, self._caches, stop)

    def _count(self, request: Count, _: Stop, loaded: LoadedModel) -> Iterator[Event]:
        kept = is_remembered(request.messages, request.first)
        turns = tuple(
            self._tokens_of(message, loaded) if is_kept else 0
            for message, is_kept in zip(request.messages, kept, strict=True)
        )
        system = request.options.system_prompt
        system_tokens = len(loaded.tokenizer.encode_plain(system)) if system.strip() else 0
        total = system_tokens + sum(turns)
        if total:
            try:
                build = self._builder(request.options, loaded, asks=False)
                total = len(build(remembered(request.messages, request.first)))
            except PromptError:  # there is no question yet: its words will be few
                log.debug("counted without the template")
        limit = loaded.info.context_length
        yield Counted(
            request.request_id, ContextUse(system_tokens, turns, total, limit, request.first)
        )
        yield Finished(request.request_id)

    def _tokens_of(self, message: Message, loaded: LoadedModel) -> int:
        known = self._written.get(message.text) if message.role == "assistant" else None
        return len(loaded.tokenizer.encode_plain(message.text)) if known is None else len(known)

    def _preview(self, request: Preview, _: Stop, loaded: LoadedModel) -> Iterator[Event]:
        build = self._builder(request.options, loaded, asks=False)
        prompt = build(remembered(request.messages, request.first))
        yield Previewed(request.request_id, prompt.text, len(prompt))
        yield Finished(request.request_id)

    # ---- what is kept

    @property
    def _generator(self) -> og.Generator | None:
        return self._caches.current

    def _remember(self, writing: Writing, tokenizer: og.Tokenizer) -> None:
        """Keep the ids of an answer whose text is exactly theirs, for the next turn's prompt."""
        ids, text = tuple(writing.token_ids), writing.answer
        is_plain = tokenizer.special_token_ids.isdisjoint(ids)
        if text and is_plain and tokenizer.decode(list(ids)) == text:
            self._written.pop(text, None)
            self._written[text] = ids
            while len(self._written) > KEPT_ANSWERS:
                del self._written[next(iter(self._written))]

    def _drop_caches(self) -> None:
        self._written = {}
        self._caches.close()


def _failed(request_id: int, error: EngineError) -> Failed:
    log.warning("%s", error, exc_info=error)
    if isinstance(error, ContextFullError):
        return Failed(request_id, str(error), "context", error.needed, error.limit)
    kind = "memory" if isinstance(error, OutOfMemoryError) else "model"
    return Failed(request_id, str(error), kind=kind)
