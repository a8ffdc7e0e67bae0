"""Generator: tokens in, tokens out. Knows words like append, run, select, and no tensors.

The state is one story: `sequence` is the text, the decoder has read `decoder.length` tokens of it
(a chosen token is read together with what comes next), and `logits` belong to the whole of it or
are None. Whatever fails or is stopped leaves these three as they were before.
"""

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from app.engine.adapters import Adapters
from app.engine.arguments import checked_logits, checked_tokens
from app.engine.beam import BeamSearch
from app.engine.decoder import Decoder
from app.engine.encoder_decoder import Translator, make_decoder
from app.engine.errors import ContextFullError, EngineError, shown
from app.engine.feeds import Tokens
from app.engine.guidance import Guidance, GuidanceOptions
from app.engine.log import note
from app.engine.logits_output import Logits
from app.engine.model import Model
from app.engine.params import GeneratorParams, changed, check, checked_bias, checked_ids
from app.engine.run_control import RunControl
from app.engine.select import RowSearch, Search
from app.engine.session import Array
from app.engine.speculative import Speculation, SpeculativeOptions
from app.engine.speculative import changed as speculation_changed
from app.engine.stop import Stop
from app.engine.tensors import NamedTensors, Tensor

CHUNK_SIZE = 256  # tokens read in one run, unless the option chunk_size says otherwise

_LIVE_OPTIONS = {
    "temperature", "top_k", "top_p", "repetition_penalty", "min_length", "max_length",
    "random_seed", "do_sample", "no_repeat_ngram_size", "min_p",
}  # fmt: skip


class Generator:
    def __init__(self, model: Model, params: GeneratorParams) -> None:
        if not isinstance(model, Model) or not isinstance(params, GeneratorParams):
            raise TypeError("A Generator is made of a Model and of GeneratorParams.")
        self._model = model
        self._model_config = model.config.model
        self._configuration = model.config
        self._options = params.freeze()
        self._preferences = params.preferences
        self._batch, self._beams = self._options.batch_size, self._options.num_beams
        self._rows = self._batch * self._beams
        pad_id = self._model_config.pad_token_id
        has_beams = self._beams > 1
        decoder = make_decoder(model, rows=self._batch, pad_id=pad_id, moves_rows=has_beams)
        self._prompt_rows = self._batch  # beams are the same until the first token is chosen
        if has_beams and decoder.fixed_rows == self._rows:
            decoder = make_decoder(model, rows=self._rows, pad_id=pad_id, moves_rows=True)
            self._prompt_rows = self._rows
        self._decoder: Decoder | Translator | None = decoder
        self._adapters: Adapters | None = None
        self._control = RunControl(model.config.model.decoder.run_options)
        self._random = np.random.RandomState(_seed(self._options.random_seed))
        self._search = self._make_search()
        self._guidance = (
            Guidance(model, params.guidance, rows=self._rows) if params.guidance else None
        )
        self._answer_start = 0  # where the grammar begins
        self._speculation = Speculation(params.freeze_speculative())
        self._sequence = np.zeros((self._rows, 256), np.int32)  # (B, T) and room to grow
        self._length = 0
        self._logits: Logits | None = None  # (B, V), current: the next token is chosen from them
        self._ended = np.zeros(self._rows, np.bool_)
        self._next = np.zeros(self._rows, np.int32)
        self._last_start = 0  # first token of the last call that read some
        self._run_start = 0  # first token of the last run

    # ------------------------------------------------------------ text in

    def append_tokens(self, tokens: "ArrayLike | Tensor") -> None:
        """Add `tokens` to the text and read them at once. All or nothing."""
        given = self._check_tokens(tokens)
        note("append_next_tokens", given)
        decoder = self._open()
        answer_start = self._answer_start
        before = self._length, decoder.length, self._ended.copy(), self._next, self._logits
        from_outside = self._logits is not None and self._logits is not decoder.logits
        try:
            for _ in self._read(given):
                pass
        except BaseException:
            self._length, read, self._ended, self._next, logits = before
            decoder.rewind_to(min(read, decoder.length))
            self._start_guidance(answer_start)
            self._logits = logits if from_outside else None
            raise

    def prefill(self, tokens: "ArrayLike | Tensor") -> Iterator[int]:
        """Like append_tokens, in steps: yields how many of `tokens` have been read.

        What was read stays if a later step is stopped or the iterator is dropped.
        """
        return self._read(self._check_tokens(tokens))

    def _read(self, given: Tokens) -> Iterator[int]:
        size = self._options.chunk_size if self._options.chunk_size > 0 else CHUNK_SIZE
        decoder = self._open()
        if self._rows > 1 or decoder.must_read_at_once(self._length + given.shape[1]):
            size = given.shape[1]
        start = min(self._length, decoder.length)
        decoder.mark()
        done = 0
        while done < given.shape[1]:
            chunk = given[:, done : done + size]
            self._run(chunk, wants_logits=done + chunk.shape[1] == given.shape[1])
            self._last_start = start
            self._extend(np.repeat(chunk, self._beams, axis=0))
            self._ended = np.zeros(self._rows, np.bool_)
            self._start_guidance(self._length)
            done += chunk.shape[1]
            if self._beams > 1:
                self._start_beams()
            elif done == given.shape[1]:
                decoder.mark()
            yield done

    def _start_beams(self) -> None:
        """From one row for each prompt to one for each beam."""
        decoder = self._open()
        if self._prompt_rows < self._rows:
            decoder.reorder(np.repeat(np.arange(self._batch), self._beams))
        self._logits = decoder.logits
        self._search.restart()

    def _check_tokens(self, tokens: "ArrayLike | Tensor") -> Tokens:
        """(B, L) int32, every id within the vocabulary, no more than fit."""
        given = checked_tokens(tokens, rows=self._batch, vocab_size=self._model_config.vocab_size)
        if self._rows > 1 and self._length > 0:
            option = "batch_size" if self._batch > 1 else "num_beams"
            raise EngineError(
                f"With a {option} above 1 tokens can only be appended to an empty text; "
                "rewind_to(0) first."
            )
        self._check_room(given.shape[1])
        return given

    def _check_room(self, count: int) -> None:
        needed, limit = self._length + count, self._options.max_length
        if needed > limit:
            raise ContextFullError(
                f"{count} tokens after {self._length} make {needed}; max_length allows {limit}.",
                needed=needed,
                limit=limit,
            )

    # ------------------------------------------------------------ text out

    def generate_next_token(self) -> None:
        """Choose one token per row and add it to the text; end-of-text is not added."""
        self._check_can_generate()
        logits = self._current_logits()
        text = self._sequence[:, : self._length]
        guidance = self._guidance
        go_back = self._search.snapshot()
        choice = self._search.choose(logits, text, self._ended, guidance)
        if choice.parents is not None:
            try:
                self._open().reorder(choice.parents)
            except BaseException:
                go_back()
                raise
            text[:] = text[choice.parents]
        if guidance is not None:
            parents = None if choice.parents is None else choice.parents.tolist()
            guidance.accept(choice.tokens, parents=parents, ended=choice.ended.tolist())
        self._logits = None
        self._next, self._ended = choice.tokens, choice.ended
        if self._ended.all():
            note("hit_eos", choice.tokens)
        else:
            self._extend(choice.tokens[:, None])
            if self._speculation.judge(int(choice.tokens[0])):
                self._open().accept()
        note("generate_next_token", choice.tokens)
        if self._length >= self._options.max_length:
            note("hit_max_length", self._length)

    def _check_can_generate(self) -> None:
        self._open()
        limit = self._options.max_length
        if self._length >= limit:
            raise ContextFullError(
                f"The text has reached max_length ({limit}).",
                needed=self._length + 1,
                limit=limit,
            )
        if self._length == 0 and self._logits is None:
            raise EngineError("There is nothing to continue: append tokens first.")
        if self._logits is None and self._ended.all():
            raise EngineError("The answer has ended; append tokens to go on.")

    def is_done(self) -> bool:
        if self._length >= self._options.max_length:
            return True
        return self._logits is None and bool(self._ended.all())

    def get_finish_reasons(self) -> list[str]:
        """Of each prompt "eos", "length", or "" while its answer goes on."""
        ended = self._ended.reshape(self._batch, self._beams)
        last = "length" if self._length >= self._options.max_length else ""
        return ["eos" if all(beams) else last for beams in ended.tolist()]

    def get_next_tokens(self) -> Tokens:
        """The token of each row that was chosen (or appended) last, end-of-text included."""
        return self._next.copy()

    def get_sequence(self, index: SupportsIndex) -> Tokens:
        """Prompt and answer; with beams the best so far, prompt by prompt, the best first."""
        wanted = operator.index(index)
        if not 0 <= wanted < self._search.count:
            raise EngineError(f"There is no sequence {wanted}; there are {self._search.count}.")
        return self._search.result(wanted, self._sequence[:, : self._length]).copy()

    def token_count(self) -> int:
        return self._length

    def rewind_to(self, length: SupportsIndex) -> None:
        """Forget everything after the first `length` tokens; what follows is exact."""
        if isinstance(length, (bool, np.bool_)):
            raise TypeError("rewind_to takes a number of tokens, not a bool.")
        wanted = operator.index(length)
        decoder = self._open()
        if wanted < 0:
            raise ValueError(f"rewind_to takes a number of tokens from 0 on, not {wanted}.")
        if wanted > self._length:
            raise EngineError(f"Cannot rewind to {wanted} tokens; the text has {self._length}.")
        if wanted == self._length:
            return
        self._speculation.drop()
        if self._beams > 1:
            self._end_beams(wanted)
        self._search.restart()
        decoder.rewind_to(min(wanted, decoder.length))
        decoder.cut(wanted)
        self._length = wanted
        self._logits = None
        self._start_guidance(min(self._answer_start, wanted))
        self._ended = np.zeros(self._rows, np.bool_)
        last = self._sequence[:, wanted - 1] if wanted else np.zeros(self._rows, np.int32)
        self._next = last.copy()

    def _start_guidance(self, start: int) -> None:
        """The grammar begins at token `start`; what is written after it is part of the answer."""
        self._answer_start = start
        if self._guidance is not None:
            self._guidance.restart(self._sequence[:, start : self._length])

    def snapshot_state(self) -> None:
        """Make rewind_to come back to what is read now for nothing, in every kind of model.

        Only models with recurrent layers need it, and they too are rewound without: from the
        nearest snapshot or end of a prompt before, what lies between is read again.
        """
        self._open().mark()

    def _end_beams(self, wanted: int) -> None:
        if wanted > 0:
            raise EngineError("With num_beams above 1 only rewind_to(0) is possible.")
        decoder = self._open()
        if self._prompt_rows < self._rows:
            decoder.reorder(np.arange(self._batch) * self._beams)
        decoder.rewind_to(0)

    def get_speculative_stats(self) -> dict[str, Any]:
        """How many tokens were guessed, and how many of them rightly."""
        return self._speculation.stats()

    # ------------------------------------------------------------ logits

    def get_logits(self) -> Logits:
        """(B, V) float32, the model's own, before any search option. A copy."""
        self._open()
        if self._length == 0 and self._logits is None:
            raise EngineError("There are no logits yet: append tokens first.")
        logits = self._current_logits()
        if self._ended.all() and self._beams == 1:
            self._ended = np.zeros(self._rows, np.bool_)
        return logits.copy()

    def set_logits(self, logits: ArrayLike) -> None:
        """Take the next tokens from these instead. Any shape of B * V numbers; nothing runs."""
        copy = checked_logits(logits, rows=self._rows, vocab_size=self._model_config.vocab_size)
        self._open()
        if self._logits is None and self._length:
            raise EngineError("The logits are not computed yet: call get_logits first.")
        self._logits = copy

    def _current_logits(self) -> Logits:
        """Current logits; reads the pending token, or the last one again, if there are none."""
        if self._logits is not None:
            return self._logits
        decoder = self._open()
        if decoder.logits_length == self._length:
            self._logits = decoder.logits
            return self._logits
        if not self._run_with_guess():
            self._run()
        self._last_start = self._run_start
        self._logits = decoder.logits
        return decoder.logits

    def _run_with_guess(self) -> bool:
        """Read the pending token and a guess of what follows it, if there is one."""
        decoder = self._open()
        total = self._length
        if not self._guesses or decoder.length != total - 1 or not decoder.can_draft:
            return False
        room = self._options.max_length - total - 1
        guess = self._guess(room)
        if not len(guess) or not decoder.can_try_out(len(guess)):
            return False
        self._control.check()
        self._run_start = decoder.length
        decoder.try_out(self._sequence[:, total - 1 : total], guess[None], self._control.stop)
        self._speculation.start(guess)
        return True

    def _guess(self, room: int) -> Tokens:
        forced = self._guidance.forced() if self._guidance is not None else []
        if forced:
            self._speculation.drop()
            return np.array(forced[:room], np.int32)
        return self._speculation.propose(self._sequence[0, : self._length], room=room)

    @property
    def _guesses(self) -> bool:
        return self._speculation.is_on or self._guidance is not None

    def _run(
        self,
        more: Tokens | None = None,
        *,
        all_columns: bool = False,
        wants_logits: bool = True,
    ) -> None:
        """Read what is unread of the text (or its last token again), and `more` after it.

        On failure the decoder's logits are lost, never wrong: they are None from before on.
        """
        decoder = self._open()
        self._control.check()
        self._speculation.drop()
        if self._logits is decoder.logits:
            self._logits = None
        total = self._length + (0 if more is None else more.shape[1])
        start = decoder.start_for(total, decoder.length)
        if start < decoder.length:
            decoder.rewind_to(start)
        self._run_start = decoder.length
        tokens = self._sequence[:, decoder.length : self._length]
        if more is not None:
            more = np.repeat(more, self._prompt_rows // self._batch, axis=0)
            tokens = np.concatenate([tokens[:: self._rows // self._prompt_rows], more], axis=1)
        decoder.run(
            tokens,
            self._control.stop,
            all_columns=all_columns,
            wants_logits=wants_logits,
            is_again=more is None,
        )
        if decoder.logits_length == decoder.length:
            self._logits = decoder.logits
            note("model_logits", self._logits)

    def _extend(self, tokens: Tokens) -> None:
        end = self._length + tokens.shape[1]
        if end > self._sequence.shape[1]:
            wider = np.zeros((self._rows, max(end, 2 * self._sequence.shape[1])), np.int32)
            wider[:, : self._length] = self._sequence[:, : self._length]
            self._sequence = wider
        self._sequence[:, self._length : end] = tokens
        self._length = end
        self._next = tokens[:, -1].copy()

    # ------------------------------------------------------------ inputs and outputs by name

    def get_input(self, name: str) -> Array:
        return self._open().input(name)

    def get_output(self, name: str) -> Array:
        """Of the last call that ran the model. Its logits are (B, L, V) for all L tokens read.

        While a prompt is read only its last logits are computed; asking for all reads it again.
        """
        decoder = self._open()
        found = decoder.output(name)
        width = decoder.length - self._last_start
        if name == self._model_config.decoder.outputs["logits"] and found.shape[1] < width:
            self._read_again(self._last_start)
            found = decoder.output(name)[:, -width:]
        return found

    def _read_again(self, start: int) -> None:
        """Read what the cache holds from `start` on once more, for the logits of all columns."""
        decoder = self._open()
        logits, end = self._logits, decoder.length
        is_from_model = logits is decoder.logits
        length, self._length = self._length, end
        try:
            decoder.rewind_to(start)
            self._run(all_columns=True)
        finally:
            self._length = length
        if not is_from_model:
            self._logits = logits

    def set_model_input(self, name: str, value: Array) -> None:
        """Give an input of the graph. One that the engine feeds itself is set for the next run."""
        if not isinstance(value, np.ndarray):
            raise TypeError(f"set_model_input takes a numpy array, not {type(value).__name__}.")
        self._open().give(str(name), value)

    def set_hidden_states(self, states: Array) -> None:
        """For the next run only, where the graph reads another model's states beside tokens."""
        self.set_model_input(self._model_config.decoder.inputs["hidden_states"], states)

    def set_inputs(self, tensors: NamedTensors) -> None:
        """Give several inputs at once; `input_ids` among them is appended last."""
        if not isinstance(tensors, NamedTensors):
            raise TypeError(f"set_inputs takes NamedTensors, not {type(tensors).__name__}.")
        ids = self._model_config.decoder.inputs["input_ids"]
        for name in tensors:
            if name != ids:
                self.set_model_input(name, tensors[name].data())
        if ids in tensors:
            self.append_tokens(tensors[ids])

    def set_active_adapter(self, adapters: Adapters, name: "str | Sequence[str] | None") -> None:
        """Use this adapter from the next run on in place of those before; None: no adapter.

        A list stacks: the model then works with the sum of what each adds. What was read before
        stays as it was read.
        """
        if not isinstance(adapters, Adapters):
            raise TypeError(f"set_active_adapter takes Adapters, not {type(adapters).__name__}.")
        names = [] if name is None else [name] if isinstance(name, str) else list(name)
        if not all(isinstance(one, str) for one in names):
            raise TypeError(f"An adapter is named by text, or by a list of it, not {shown(name)}.")
        parameters = adapters.parameters(names)
        self._open().set_parameters(parameters)
        self._return_adapters()
        self._adapters = adapters
        adapters.lend(self, names)

    def _return_adapters(self) -> None:
        if self._adapters is not None:
            self._adapters.lend(self, [])

    # ------------------------------------------------------------ options, stop, end

    def set_search_options(self, **options: Any) -> None:
        """Change options between tokens; they act from the next token on."""
        for name in options:
            if name not in _LIVE_OPTIONS:
                raise EngineError(f"{name} cannot be changed while a text is generated.")
        self._options = check(changed(self._options, options), self._configuration)
        if "random_seed" in options:
            self._random.seed(_seed(self._options.random_seed))
        self._search.change(self._options, self._preferences)

    def set_logit_bias(self, bias: Mapping[int, float]) -> None:
        """From the next token on; see GeneratorParams.set_logit_bias."""
        checked = checked_bias(bias, self._model_config.vocab_size)
        self._preferences = replace(self._preferences, bias=checked)
        self._search.change(self._options, self._preferences)

    def set_banned_tokens(self, ids: Iterable[int]) -> None:
        """From the next token on; see GeneratorParams.set_banned_tokens."""
        checked = checked_ids(ids, self._model_config.vocab_size)
        self._preferences = replace(self._preferences, banned=checked)
        self._search.change(self._options, self._preferences)

    def set_guidance(self, kind: str, data: str, *, start: int | None = None) -> None:
        """From the next token on; see GeneratorParams.set_guidance. kind "": no guidance.

        What stands after the first `start` tokens is part of the answer; unless said, nothing is.
        """
        begin = self._length if start is None else start
        guidance = None
        if kind:
            guidance = Guidance(self._model, GuidanceOptions(kind, data), rows=self._rows)
            guidance.restart(self._sequence[:, begin : self._length])
        self._guidance, self._answer_start = guidance, begin
        self._speculation.drop()

    def set_speculative_options(self, **options: Any) -> None:
        """From the next token on, all others at their defaults; see GeneratorParams."""
        if self._rows > 1:
            raise EngineError("Speculation needs batch_size 1 and num_beams 1.")
        self._speculation.drop()
        self._speculation = Speculation(speculation_changed(SpeculativeOptions(), options))

    def set_runtime_option(self, key: str, value: str) -> None:
        """terminate_session "1" stops runs until "0"; other keys go to the runtime unchecked."""
        self._control.set_option(key, value)

    def use_stop(self, stop: Stop | None) -> None:
        """Every run from now on can be ended by `stop`; None: by nothing."""
        self._control.use(stop)

    def close(self) -> None:
        """Give the cache's memory back at once."""
        self._return_adapters()
        self._decoder = None
        self._logits = None

    def __enter__(self) -> "Generator":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> "Decoder | Translator":
        if self._decoder is None:
            raise EngineError("This generator is closed.")
        return self._decoder

    def _make_search(self) -> Search:
        eos_ids, pad_id = self._model_config.eos_token_ids, self._model_config.pad_token_id
        if self._beams > 1:
            return BeamSearch(self._options, self._preferences, eos_ids=eos_ids, pad_id=pad_id)
        return RowSearch(
            self._options, self._preferences, eos_ids=eos_ids, pad_id=pad_id, random=self._random
        )


def _seed(seed: int) -> int | None:
    """numpy's RandomState is the engine of std::mt19937; a negative seed takes entropy."""
    return seed if seed >= 0 else None
