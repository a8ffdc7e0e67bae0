"""No memory, at any single point: the call fails in words, and tried again it does what it would
have done."""

import numpy as np
import pytest

from app import engine as og
from app.engine import model as model_module
from app.engine.caches import shared, window
from app.engine.session import Session

MAKERS = ("tensor", "zeros", "gather", "resize")  # all that takes memory for what is remembered
PLAIN = dict(max_length=60, chunk_size=5, do_sample=False)
SAMPLED = dict(do_sample=True, top_k=9, temperature=3.0, random_seed=5)
SCENES = {
    "greedy": ("tiny-llama-gqa", PLAIN),
    "own buffers": ("unshared", PLAIN),
    "sampled": (
        "tiny-llama",
        PLAIN | dict(do_sample=True, top_k=9, temperature=3.0, random_seed=5),
    ),
    "beams": ("tiny-llama-gqa", PLAIN | dict(num_beams=3)),
    "beams, own buffers": ("unshared", PLAIN | dict(num_beams=3, num_return_sequences=2)),
    "batch with beams": ("tiny-llama-gqa", PLAIN | dict(num_beams=2, batch_size=2)),
    "batch": ("tiny-llama-gqa", PLAIN | dict(batch_size=2)),
    "recurrent": ("recurrent", PLAIN),
    "recurrent batch": ("recurrent", PLAIN | dict(batch_size=2)),
    "recurrent with beams": ("recurrent", PLAIN | dict(num_beams=2)),
    "combined": ("combined", PLAIN),
    "per-layer heads": ("heads", PLAIN),
    "windows": ("windows", PLAIN),
    "windows, batch": ("windows", PLAIN | dict(batch_size=2)),
    "windows, beams": ("window", PLAIN | dict(num_beams=2)),
    "fixed runs": ("fixed-runs", PLAIN),
    "shifted windows": ("windows", PLAIN),
    "shifted windows, beams": ("window", PLAIN | dict(num_beams=2)),
}


class Failing:
    """Lets the makers of tensors fail at one call, counted from 0; -1: only counts."""

    def __init__(self, monkeypatch):
        self.count, self.at = 0, -1
        for name in MAKERS:
            monkeypatch.setattr(Session, name, self._wrapped(getattr(Session, name)))

    def _wrapped(self, make):
        def failing(session, *arguments, **named):
            number, self.count = self.count, self.count + 1
            if number == self.at:
                raise og.OutOfMemoryError("Not enough memory for this test.")
            return make(session, *arguments, **named)

        return failing


def steps(generator, options):
    """The calls of one use: a prompt, some tokens, back, another prompt, more tokens."""
    rows = options.get("batch_size", 1)
    prompt = np.tile(np.arange(40, 51), (rows, 1))
    if rows > 1:
        prompt[1, 7:] = 0  # pads
    is_single = rows == 1 and options.get("num_beams", 1) == 1
    yield lambda: generator.append_tokens(prompt)
    for _ in range(7):
        yield generator.generate_next_token
    yield lambda: generator.rewind_to(6 if is_single else 0)
    yield lambda: generator.append_tokens(prompt[:, :4])
    for _ in range(9):
        yield generator.generate_next_token


def text_of(model, options, failing, at):
    """What is written when the call number `at` fails, and is then done again."""
    params = og.GeneratorParams(model)
    params.set_search_options(**options)
    failing.count, failing.at = 0, -1
    with og.Generator(model, params) as generator:
        failing.count, failing.at = 0, at
        has_failed = False
        for step in steps(generator, options):
            if generator.is_done() and step == generator.generate_next_token:
                continue
            try:
                step()
            except og.OutOfMemoryError:
                assert not has_failed
                has_failed = True
                step()
        assert has_failed == (0 <= at < failing.count)
        count = options.get("batch_size", 1) * options.get("num_return_sequences", 1)
        return [generator.get_sequence(index).tolist() for index in range(count)]


@pytest.mark.parametrize("name", SCENES)
def test_what_fails_for_memory_can_be_done_again(name, variant, data_folder, monkeypatch):
    monkeypatch.setattr(shared, "STEP", 8)
    monkeypatch.setattr(window, "SLACK", 2)
    if name.startswith("shifted"):  # as on devices whose attention does not evict by itself
        monkeypatch.setattr(model_module, "_window_way", lambda *_: "shifts")
    folder, options = SCENES[name]
    place = data_folder / folder if (data_folder / folder).is_dir() else variant(folder)
    with og.Model(place) as model:
        failing = Failing(monkeypatch)
        expected = text_of(model, options, failing, -1)
        calls = failing.count
        assert calls > 3
        for at in range(0, calls, 1 + 2 * (calls // 400)):  # of very many each third, fifth ..
            assert text_of(model, options, failing, at) == expected, f"call {at} of {calls}"
