"""One answer: from a request that was checked to its last event. Works on a generator it is lent.

Knows tokens, options and the text that grows; nothing of what a session does with errors.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from app import engine as og
from app.chat import options as chat_options
from app.chat.banned import DeadEndError, Detours, spellings
from app.chat.caches import Caches, Reading, keep_common
from app.chat.context import room_for_answer
from app.chat.events import Event, Failed, Finished, Notice, Prefill, Reply, Trying
from app.chat.loaded import LoadedModel
from app.chat.messages import FinishReason, Options, Stats
from app.chat.options import OptionError
from app.chat.prompt import Prompt
from app.chat.tokens import Seen
from app.chat.writing import Writing
from app.engine.errors import ContextFullError, EngineError, OutOfMemoryError, Stopped
from app.engine.stop import Stop

log = logging.getLogger(__name__)

LIVE_ALTERNATIVES = 5
NO_WAY_OUT = (
    "Every way to go on led to a banned word, so the answer ends here. Take a word off the list of"
    " banned words, or let the answer be written again."
)
_TRYING_EVERY = 8  # tokens between two words about beams
_NOT_LIVE = ("beams", "answer_format", "answer_grammar", "guesses_ahead", "thinks", "system_prompt")


@dataclass(frozen=True)
class Plan:
    """What an answer is made of. `options` are settled."""

    request: Reply
    prompt: Prompt
    options: Options
    seed: int
    started: float


class Answering:
    def __init__(
        self,
        plan: Plan,
        loaded: LoadedModel,
        caches: Caches,
        stop: Stop,
        take_wanted: Callable[[], Options | None],
    ) -> None:
        """`take_wanted`: options that were changed since it was asked last."""
        self._plan, self._loaded, self._caches, self._stop = plan, loaded, caches, stop
        self._take_wanted = take_wanted
        self._id = plan.request.request_id
        self._options = plan.options
        self._detours = Detours()
        self._always: frozenset[int] = frozenset()
        self._barred: frozenset[int] = frozenset()
        has_form = plan.options.answer_format != "text"  # then nothing of it is a thought
        self.writing = Writing(
            self._id,
            loaded.tokenizer,
            replace(plan.prompt, starts_in_thought=False) if has_form else plan.prompt,
            stop_strings=plan.options.stop_strings,
            banned=plan.options.banned,
            watches=plan.request.watches_tokens,
        )
        self._stats = self._first_stats()

    def run(self) -> Iterator[Event]:
        """Raises OptionError before anything was touched, and whatever the engine raises."""
        plan = self._plan
        if plan.options.beams == 1:
            with self._prepared(self._with_cache) as generator:
                yield from self._write(generator)
            return
        with self._prepared(self._with_beams) as generator:
            try:
                yield from self._try_beams(generator)
            finally:
                generator.close()

    # ---- the generator

    def _prepared(self, make: Callable[[dict[str, Any]], og.Generator]) -> Reading:
        try:
            generator = make(self._search(self._options, len(self._plan.prompt)))
        except (ContextFullError, OutOfMemoryError):
            raise
        except EngineError as error:
            raise OptionError(str(error)) from error
        return Reading(generator, self._stop)

    def _with_cache(self, search: dict[str, Any]) -> og.Generator:
        speculation = chat_options.speculative_options(self._options)
        guidance = chat_options.guidance_of(self._options)
        prompt = self._plan.prompt
        generator = self._caches.prepared(
            self._loaded.model, prompt.token_ids + prompt.start, search, speculation
        )
        try:
            generator.set_guidance(*guidance)
        except EngineError as error:
            raise chat_options.refusal(self._options.answer_format, error) from error
        return generator

    def _with_beams(self, search: dict[str, Any]) -> og.Generator:
        return self._caches.with_beams(self._loaded.model, search)

    def _search(self, options: Options, prompt_tokens: int) -> dict[str, Any]:
        info = self._loaded.info
        most = room_for_answer(
            prompt_tokens,
            context_length=info.context_length,
            longest_answer=options.longest_answer,
        )
        least = len(self._plan.prompt.token_ids) + options.shortest_answer
        lengths = {"max_length": most, "min_length": least if options.shortest_answer else 0}
        search = chat_options.search_options(options) | lengths | {"random_seed": self._plan.seed}
        if options.beams > 1:
            search |= chat_options.beam_options(options)
        self._stats = replace(self._stats, options=search)
        return search

    def _read(self, generator: og.Generator, kept: int) -> Iterator[Event]:
        prompt = self._plan.prompt
        wanted = prompt.token_ids + prompt.start
        self._stats = replace(self._stats, kept_tokens=kept)
        yield Prefill(self._id, kept, len(wanted), kept)
        if kept < len(wanted):
            for done in generator.prefill(list(wanted[kept:])):
                yield Prefill(self._id, kept + done, len(wanted), kept)
        if prompt.start:  # what stands of the answer is a part of its form
            self._guide(generator, start=len(prompt.token_ids))

    def _guide(self, generator: og.Generator, *, start: int) -> None:
        kind, text = chat_options.guidance_of(self._options)
        if not kind:
            return
        try:
            generator.set_guidance(kind, text, start=start)
        except EngineError as error:
            raise OptionError(
                "What stands of the answer does not have the form that was asked for, so it cannot"
                " be continued in it."
            ) from error

    # ---- token by token

    def _write(self, generator: og.Generator) -> Iterator[Event]:
        prompt, writing = self._plan.prompt, self.writing
        reason: FinishReason = "stopped"
        self._always = self._single_tokens()
        self._barred = frozenset()
        generator.set_banned_tokens(())
        try:
            yield from writing.begin(prompt.start)
            kept = keep_common(generator, prompt.token_ids + prompt.start)
            yield from self._read(generator, kept)
            if kept == len(prompt):
                generator.get_logits()  # an answer that had ended goes on
            yield from self._tokens(generator)
            reason = self._reason(generator)
        except Stopped:
            pass
        except DeadEndError:
            yield from writing.rest()
            yield Failed(self._id, NO_WAY_OUT, kind="options")
            return
        yield from writing.rest()
        yield self._finished(reason)

    def _tokens(self, generator: og.Generator) -> Iterator[Event]:
        """One token after the other; an end token ends it and is not kept."""
        writing, watches = self.writing, self._plan.request.watches_tokens
        while not (generator.is_done() or writing.is_ended or self._stop.is_set()):
            if (wanted := self._take_wanted()) is not None:
                yield from self._change(generator, wanted)
                continue  # a shorter longest answer may end it here
            self._bar(generator)
            row = generator.get_logits()[0] if watches else None
            count = generator.token_count()
            generator.generate_next_token()
            token = int(generator.get_next_tokens()[0])
            if token in self._loaded.end_tokens:
                writing.has_end_token = True
                if generator.token_count() > count:  # an end token that the engine takes for text
                    generator.rewind_to(count)
                return
            seen: Seen | None = None
            if row is not None:
                seen = self._loaded.eye.see(row, token, LIVE_ALTERNATIVES)
            if (place := writing.add(token, seen)) is not None:
                self._turn_back(generator, place)
                continue
            yield from writing.pieces()
            self._detours.settle(writing.sent)

    def _turn_back(self, generator: og.Generator, place: int) -> None:
        writing = self.writing
        self._detours.settle(writing.sent)
        back = place
        try:
            back = self._detours.turn_back(place, writing.token_ids)
        finally:  # where there is no way out, the text ends before the word
            writing.avoided = self._detours.avoided
            writing.take_back(back)
            generator.rewind_to(len(self._plan.prompt.token_ids) + back)

    def _bar(self, generator: og.Generator) -> None:
        """Forbid for the next token what must not stand there."""
        writing = self.writing
        barred = self._always | self._detours.barred(len(writing))
        if len(writing) < self._options.shortest_answer:
            barred |= self._loaded.extra_ends
        if barred != self._barred:
            generator.set_banned_tokens(barred)
            self._barred = barred

    def _single_tokens(self) -> frozenset[int]:
        """Banned words that are tokens of their own, however they are written."""
        tokenizer, words = self._loaded.tokenizer, self.writing.words
        found: set[int] = set()
        for spelling in {way for word in words.words for way in spellings(word)}:
            ids = tokenizer.encode_plain(spelling)
            if len(ids) == 1 and words.find(tokenizer.decode(ids)) is not None:
                found.add(int(ids[0]))
        return frozenset(found)

    # ---- options that change on the way

    def _change(self, generator: og.Generator, wanted: Options) -> Iterator[Event]:
        before, info = self._options, self._loaded.info
        new = chat_options.settled(wanted, info.defaults)
        frozen = {name: getattr(before, name) for name in _NOT_LIVE}
        if any(getattr(new, name) != value for name, value in frozen.items()):
            yield Notice(self._id, "This change acts from the next answer on.")
        new = replace(new, **frozen)
        search = self._search(new, len(self._plan.prompt))
        search["max_length"] = max(search["max_length"], generator.token_count())
        del search["random_seed"]
        if new.seed is not None and new.seed != before.seed:
            search["random_seed"] = new.seed
        try:
            generator.set_search_options(**search)
        except EngineError as error:  # the answer goes on as it was; its options say so
            log.warning("options not changed: %s", error)
            yield Notice(self._id, f"This change does not act: {error}")
            return
        self._options = new
        self.writing.set_stop_strings(new.stop_strings)
        if new.banned != before.banned:
            self.writing.set_banned(new.banned)
            self._always = self._single_tokens()
        self.writing.changed = search
        self._stats = replace(self._stats, is_repeatable=False)

    # ---- several answers at a time

    def _try_beams(self, generator: og.Generator) -> Iterator[Event]:
        prompt, writing, beams = self._plan.prompt, self.writing, self._options.beams
        reason: FinishReason = "stopped"
        has_read = False
        try:
            yield from writing.begin(prompt.start)
            yield from self._read(generator, 0)
            has_read = True
            yield Trying(self._id, beams, 0)
            while not (generator.is_done() or self._stop.is_set()):
                if self._take_wanted() is not None:
                    yield Notice(
                        self._id,
                        f"{beams} answers are being tried: changes act from the next answer on.",
                    )
                generator.generate_next_token()
                count = generator.token_count() - len(prompt)
                if count % _TRYING_EVERY == 0:
                    yield Trying(self._id, beams, count)
        except Stopped:
            pass
        if has_read:
            best = generator.get_sequence(0).tolist()
            for token in best[len(prompt) :]:
                if token in self._loaded.end_tokens:
                    writing.has_end_token = True
                    break
                writing.add(token)
                yield from writing.pieces()
                if writing.is_ended:
                    break
            writing.has_end_token |= len(best) < generator.token_count()
            reason = self._reason(generator)
        yield from writing.rest()
        yield self._finished(reason)

    # ---- the end

    def _reason(self, generator: og.Generator) -> FinishReason:
        if self.writing.has_end_token or self.writing.is_ended:
            return "end"
        if generator.token_count() >= self._loaded.info.context_length:
            return "context"
        return "stopped" if self._stop.is_set() else "length"

    def _finished(self, reason: FinishReason) -> Finished:
        return Finished(self._id, reason, self.writing.stats(self._stats, self._plan.started))

    def _first_stats(self) -> Stats:
        plan, loaded = self._plan, self._loaded
        chosen = replace(plan.options, seed=plan.seed)
        return Stats(
            prompt_tokens=len(plan.prompt),
            seed=plan.seed,
            context_length=loaded.info.context_length,
            fingerprint=loaded.fingerprint,
            template_hash=loaded.template_hash,
            device=loaded.info.device,
            chosen=chat_options.to_record(chosen),
            is_repeatable=not plan.prompt.start,
        )
