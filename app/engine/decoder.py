"""Token ids (B, L) and a cache -> logits (B, V): one run of the model after another.

A run goes through the model's graphs in order (one for most models), binds what each declares, and
reads the logits of the wanted columns. Knows nothing of how tokens are chosen. Invariant: `length`
tokens of the text are in the cache, and a run that fails leaves that number as it was.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine import graph, log
from app.engine.caches import Rows, SlidingCache, make_cache
from app.engine.errors import EngineError, shown
from app.engine.feeds import Feeds, Span, Tokens
from app.engine.input_windows import InputWindows
from app.engine.logits_output import Logits, LogitsOutput
from app.engine.model import Model
from app.engine.session import Array, to_numpy
from app.engine.stage import Stage
from app.engine.stop import Stop


class Decoder:
    def __init__(
        self,
        model: Model,
        *,
        rows: int,
        pad_id: int,
        moves_rows: bool = False,
        is_part: bool = False,
    ) -> None:
        """`moves_rows`: reorder is called after each token; `is_part`: another one takes it up."""
        config = model.config.model
        self._model, self._pad_id = model, pad_id
        self._rows, self._vocab_size = rows, config.vocab_size
        self._cache = make_cache(
            model.slots,
            rows=rows,
            limit=config.context_length,
            is_shared=model.shares_cache,
            moves_rows=moves_rows,
            is_part=is_part,
            pad_value=config.decoder.sliding_window.pad_value
            if config.decoder.sliding_window
            else 0,
        )
        self._windows = model.input_windows
        if self._windows is not None:
            self._windows.check(rows, has_positions=self._cache.has_positions)
            self._windows = self._windows if rows == 1 else None
        self._feeds = Feeds(model.input_names, rows=rows, pad_id=pad_id)
        self._cache_names = {name for slot in model.slots for name in slot.names}
        logits_name = config.decoder.outputs["logits"]
        outside = self._cache_names | {logits_name, graph.POSITIONS}
        passed = {config.decoder.inputs[word] for word in ("inputs_embeds", "hidden_states")}
        self._stages: list[Stage] = []
        for part in model.parts:
            feeds = self._feeds.make(part.session.inputs)
            self._stages.append(Stage(part, feeds, outside=outside, passed=passed))
            if not part.runs_once:
                passed |= {part.renamed.get(name, name) for name in part.session.outputs}
        self._output = LogitsOutput(self._stages, logits_name, self._vocab_size)
        names = config.decoder.inputs
        self._limits = {
            names["input_ids"]: self._vocab_size,
            names["position_ids"]: config.context_length,
            names["attention_mask"]: 2,
        }
        self._wanted = {name for stage in self._stages for name in stage.session.inputs}
        self._passed: dict[str, Any] = {}  # what stages gave that run only once a text
        self._last_passed: dict[str, Any] = {}
        self._switch_length = model.switch_length
        self._is_long = False  # whether the cache was computed with the factors of long texts
        self._trial: Logits | None = None  # (K, V): logits after tokens that were read on trial
        self.length = 0
        self.logits_length = -1  # number of tokens after which `logits` stands; -1: worth nothing
        self.logits: Logits = np.zeros((rows, self._vocab_size), np.float32)

    @property
    def fixed_rows(self) -> int:
        """The number of rows that the graphs are made for; 0: any."""
        inputs = self._output.head.session.inputs.values()
        return max((info.shape[0] for info in inputs if info.shape), default=0)

    @property
    def can_draft(self) -> bool:
        """Whether tokens may be read on trial and taken back for nothing, as a rule."""
        return self._output.gives_all and self._cache.can_take_back and self._rows == 1

    def can_try_out(self, count: int) -> bool:
        """Whether so many tokens may be guessed behind the next one."""
        total = self.length + 1 + count
        return self.start_for(total, self.length) == self.length and self._cache.takes_back(
            total, count
        )

    # ------------------------------------------------------------ runs

    def run(
        self,
        tokens: Tokens,
        stop: Stop,
        *,
        all_columns: bool = False,
        wants_logits: bool = True,
        is_again: bool = False,
    ) -> None:
        """Read `tokens` (B, L) after what was read before; then `logits` (B, V) is current.

        `is_again`: from the start they are a text that was read before, pads and all. Where nobody
        wants the logits a graph that gives nothing else is left out: then they are worth nothing.
        """
        if self.length == 0 and is_again:
            tokens = self._feeds.compacted(tokens)
        elif self.length == 0:
            self._feeds.measure_prompt(tokens)
        self.logits_length = -1
        self._trial = None
        if self.length == 0 and self._pads_would_be_remembered():
            self._read_by_length(tokens, stop, all_columns=all_columns)
        elif self._windows is None:
            self._read(Span(tokens, self.length), stop, all_columns, wants_logits)
        else:
            self._read_in_windows(self._windows, tokens, stop, all_columns, wants_logits)

    def _read_in_windows(
        self,
        windows: InputWindows,
        tokens: Tokens,
        stop: Stop,
        all_columns: bool,
        wants_logits: bool,
    ) -> None:
        start, end = self.length, self.length + tokens.shape[1]
        found = []
        try:
            for span in windows.spans(tokens, start, self._pad_id):
                is_last = span.total - span.after == end
                self._read(span, stop, all_columns, all_columns or (wants_logits and is_last))
                if all_columns:
                    found.append(self._output.raw.copy())
        except BaseException:
            self.rewind_to(start)
            raise
        if len(found) > 1:
            self._output.replace(np.concatenate(found, axis=1))

    def _read(self, span: Span, stop: Stop, all_columns: bool, wants_logits: bool) -> None:
        """One run of the graphs."""
        lengths = self._feeds.text_lengths
        if isinstance(self._cache, SlidingCache):
            self._cache.expect(span.tokens.shape[1], span.before)
        self._cache.prepare(span.total)
        passed = dict(self._passed)
        for stage in self._stages:
            if not self._is_due(stage, span):
                continue
            if stage.part.is_lm_head and not wants_logits:
                continue
            stage.bind_inputs(span, passed)
            self._cache.bind(stage.binding, stage.session)
            self._output.bind(stage, span, lengths, all_columns=all_columns)
            stage.run(stop)
            if len(self._stages) > 1:
                given = stage.passed_on()
                passed.update(given)
                if stage.part.runs_once:
                    self._passed = {name: given[name] for name in given if name in self._wanted}
        self._cache.commit(span.total)
        self._tell_log()
        self.length, self._last_passed = span.total, passed
        self._is_long = self._is_long_at(span.total)
        if span.after:
            self.length -= span.after
            self._cache.rewind_to(self.length)
        if wants_logits or not self._output.head.part.is_lm_head:
            self.logits = self._output.take(span, lengths)
            self.logits_length = self.length

    def _pads_would_be_remembered(self) -> bool:
        """A state has no positions that could be masked."""
        return not self._cache.has_positions and bool(np.ptp(self._feeds.text_lengths))

    def _read_by_length(self, tokens: Tokens, stop: Stop, *, all_columns: bool) -> None:
        """Rows of the same length together, without their pads; then all side by side."""
        lengths, total = self._feeds.text_lengths, tokens.shape[1]
        readers: list[Decoder] = []
        rows: list[NDArray[np.intp]] = []
        for length in np.unique(lengths).tolist():
            same = np.flatnonzero(lengths == length)
            reader = Decoder(self._model, rows=len(same), pad_id=self._pad_id, is_part=True)
            reader.run(tokens[same, :length], stop, all_columns=all_columns)
            readers.append(reader)
            rows.append(same)
        order = np.argsort(np.concatenate(rows))
        outputs = [reader._output for reader in readers]
        width = max(output.raw.shape[1] for output in outputs)
        raw = np.zeros((len(tokens), width, self._output.width), self._output.info.numpy_type)
        for same, output in zip(rows, outputs, strict=True):
            raw[same, : output.raw.shape[1]] = output.raw
        take = self._cache.assembled([reader._cache for reader in readers], order, total)
        take()  # nothing fails from here on
        self._output.replace(raw)
        self.logits = np.concatenate([reader.logits for reader in readers])[order]
        self.length = self.logits_length = total
        self._is_long = self._is_long_at(total)

    def rewind_to(self, length: int) -> None:
        """Go back to `length` tokens, or to fewer where the cache cannot: see `length` then."""
        self._cache.rewind_to(length)
        self.length = min(length, self._cache.length)
        self.logits_length = self.logits_length if self.logits_length == self.length else -1

    def cut(self, length: int) -> None:
        """The text itself ends after `length` tokens now, read or not."""
        self._feeds.cut(length)

    def try_out(self, tokens: Tokens, guess: Tokens, stop: Stop) -> None:
        """Read `tokens` (1, L), and a guess (1, K) of what follows, in one run.

        The guess counts as not read, until each of its tokens is accepted.
        """
        count = guess.shape[1]
        self.run(np.concatenate([tokens, guess], axis=1), stop, all_columns=True)
        rows = self._output.as_float(self._output.raw[0, -count - 1 :])
        self.rewind_to(self.length - count)
        self._trial = rows[1:]
        self.logits, self.logits_length = rows[:1], self.length

    def accept(self) -> None:
        """The next token of the guess belongs to the text: it is read, its logits are known."""
        assert self._trial is not None, "nothing was tried out"
        self._cache.advance_to(self.length + 1)
        self.length += 1
        self.logits, self.logits_length = self._trial[:1], self.length
        self._trial = self._trial[1:]

    def start_for(self, total: int, length: int) -> int:
        """Where reading must begin so that logits after `total` tokens come out.

        `length` tokens are read. Pads of a batch are only understood in the first run, and some
        models have other positions in long texts, for which all of a text is read again.
        """
        if self._is_long_at(total) != self._is_long and length > 0:
            return 0
        if length < total:
            return length
        in_padded_part = self._feeds.rows > 1 and total <= self._feeds.prompt_width
        return 0 if in_padded_part else total - 1

    def must_read_at_once(self, total: int) -> bool:
        """Whether the rest of a text of `total` tokens may not be read in chunks."""
        crosses = self._is_long_at(total) and not (self._is_long and self.length)
        return crosses or any(stage.has_given_once for stage in self._stages)

    def mark(self) -> None:
        """Make the present state one that rewind_to reaches without reading again."""
        self._cache.mark()

    def reorder(self, parents: Rows) -> None:
        """Row i goes on from what row parents[i] has read; the number of rows may change."""
        if np.array_equal(parents, np.arange(self._rows)):
            return
        passed = self._passed
        if len(parents) != self._rows:
            passed = {n: self._gathered(n, tensor, parents) for n, tensor in passed.items()}
        take = self._cache.reordered(parents)
        take()  # nothing fails from here on
        self._passed = passed
        self._feeds.reorder(parents)
        self._rows = len(parents)
        self.logits = self.logits[parents]

    def _tell_log(self) -> None:
        for stage in self._stages if log.is_on("model_input_values") else ():
            for name, array in stage.last_inputs.items():
                log.note("model_input_values", f"{name} {array.dtype} {array.tolist()}")
        if not log.is_on("model_output_shapes") and not log.is_on("model_output_values"):
            return
        tensors = [(n, to_numpy(t)) for stage in self._stages for n, t in stage.passed_on().items()]
        for name, array in [*tensors, (self._output.name, self._output.raw)]:
            log.note("model_output_shapes", f"{name} {list(array.shape)}")
            log.note("model_output_values", f"{name} {array.reshape(-1)[:10]}")

    def _is_due(self, stage: Stage, span: Span) -> bool:
        if stage.part.runs_once:
            return stage.is_stale or not self._passed
        is_prompt = span.start == 0 or span.tokens.shape[1] > 1
        return stage.part.runs_on_prompt if is_prompt else stage.part.runs_on_token

    def _is_long_at(self, total: int) -> bool:
        return 0 < self._switch_length <= total

    def _gathered(self, name: str, tensor: Any, parents: Rows) -> Any:
        session = next(s.session for s in self._stages if name in s.session.inputs)
        return session.gather({name: tensor}, parents, axis=0)[name]

    # ------------------------------------------------------------ inputs and outputs by name

    def give(self, name: str, array: Array) -> None:
        """An input's value from outside: for good, or for the next run if we feed it ourselves."""
        is_ours = name in self._cache_names or name == graph.POSITIONS
        takers = [
            stage
            for stage in self._stages
            if name in stage.session.inputs or name in stage.session.overridable
        ]
        if is_ours or not takers:
            raise EngineError(f"The model has no input named {shown(name)} that can be set.")
        self._check_numbers(name, array)
        for stage in takers:
            stage.give(name, array)

    def _check_numbers(self, name: str, array: Array) -> None:
        """Ids, positions and masks in range: not every provider looks before it reads."""
        limit = self._limits.get(name)
        if limit is not None and ((array < 0) | (array >= limit)).any():
            raise EngineError(f"The input {name} takes numbers from 0 to {limit - 1}.")

    def give_to(self, part: str, name: str, array: Array) -> None:
        """To one graph only, as the type that it takes; it may have no such input."""
        for stage in self._stages:
            info = stage.session.inputs.get(name)
            if stage.part.name == part and info is not None:
                stage.give(name, array.astype(info.numpy_type))

    def set_parameters(self, parameters: Mapping[str, Any]) -> None:
        """Tensors in place of weights that the graph lets us replace; all others are its own."""
        for stage in self._stages:
            stage.forget_inputs()
            for name in stage.session.overridable:
                if name in parameters:
                    stage.bind_tensor(name, parameters[name])
        self._cache.unbind()

    def input(self, name: str) -> Array:
        for stage in reversed(self._stages):
            if name in stage.last_inputs and name != graph.POSITIONS:
                return stage.last_inputs[name].copy()
            if name in stage.session.inputs and name in self._last_passed:
                return to_numpy(self._last_passed[name])
        found = self._cache.read(name) if name in self._cache_names else None
        if found is None:
            raise EngineError(f"Generator input {shown(name)} was not found.")
        return found

    def output(self, name: str) -> Array:
        found: Array | None = None
        if name == self._output.name and self.logits_length >= 0:
            on_trial = 0 if self._trial is None else len(self._trial)
            found = self._output.output(self._output.raw.shape[1] - on_trial)
        elif name in self._cache_names:
            found = self._cache.read(name)
        elif self.length:
            given = (stage.output(name) for stage in self._stages)
            tensor = next((tensor for tensor in given if tensor is not None), None)
            found = to_numpy(tensor) if tensor is not None else None
        if found is None:
            raise EngineError(f"Generator output {shown(name)} was not found.")
        return found
