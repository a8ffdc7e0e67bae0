"""Beam search: by hand on a few tokens, against the peer, and in batches against each alone."""

import itertools

import numpy as np
import pytest

from app import engine as og
from app.engine.beam import BeamSearch
from app.engine.config import SearchOptions
from app.engine.select import Preferences

END = 444  # a token that the tiny models often find likely, taken as end of text


def config_with_end(library, folder):
    config = library.Config(str(folder))
    config.overlay(f'{{"model": {{"eos_token_id": {END}}}}}')
    return config


def run(library, folder, rows, **options):
    rows = np.asarray(rows, np.int32)
    model = library.Model(config_with_end(library, folder))
    params = library.GeneratorParams(model)
    length = rows.shape[1] + 20
    params.set_search_options(max_length=length, batch_size=len(rows), **options)
    generator = library.Generator(model, params)
    generator.append_tokens(rows)
    while not generator.is_done():
        generator.generate_next_token()
    count = len(rows) * options.get("num_return_sequences", 1)
    return [np.asarray(generator.get_sequence(i)).tolist() for i in range(count)]


CASES = [
    {"num_beams": beams, "num_return_sequences": returned, "length_penalty": penalty, **extra}
    for (beams, returned), penalty, extra in itertools.product(
        [(2, 1), (4, 4)],
        [1.0, 0.3, -1.0],
        [{}, {"repetition_penalty": 1.3, "no_repeat_ngram_size": 3}, {"min_length": 20}],
    )
]


@pytest.mark.peer
@pytest.mark.parametrize("name", ["tiny-llama", "tiny-llama-gqa", "tiny-llama-keep"])
@pytest.mark.parametrize("early_stopping", [True, False])
def test_texts_and_their_order_are_the_peers(name, early_stopping, data_folder):
    """One prompt: with several the peer's late check looks at another prompt's score (SPEC 3.6)."""
    peer = pytest.importorskip("onnxruntime_genai")
    prompts = np.random.default_rng(5).integers(6, 440, (len(CASES), 1, 5))
    for rows, case in zip(prompts, CASES, strict=True):
        options = {**case, "early_stopping": early_stopping}
        ours, theirs = (run(lib, data_folder / name, rows, **options) for lib in (og, peer))
        assert ours == theirs, options


@pytest.mark.peer
@pytest.mark.parametrize("name", ["tiny-llama", "tiny-llama-gqa"])
def test_batches_of_padded_prompts_are_the_peers(name, data_folder):
    peer = pytest.importorskip("onnxruntime_genai")
    rows = np.random.default_rng(6).integers(6, 440, (3, 7))
    rows[1, 4:] = 1
    for case in CASES[::3]:
        ours, theirs = (run(lib, data_folder / name, rows, **case) for lib in (og, peer))
        assert ours == theirs, case


@pytest.mark.parametrize("early_stopping", [True, False])
def test_a_prompt_in_a_batch_gives_what_it_gives_alone(early_stopping, data_folder):
    rows = np.random.default_rng(7).integers(6, 440, (4, 5))
    for case in CASES[::2]:
        options = {**case, "early_stopping": early_stopping}
        together = run(og, data_folder / "tiny-llama-gqa", rows, **options)
        alone = [run(og, data_folder / "tiny-llama-gqa", [row], **options) for row in rows]
        assert together == [text for texts in alone for text in texts], options


def test_looking_at_a_text_does_not_end_the_search(data_folder):
    model = og.Model(config_with_end(og, data_folder / "tiny-llama"))
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=25, num_beams=3, num_return_sequences=2)
    texts = []
    for looks in (False, True):
        with og.Generator(model, params) as generator:
            generator.append_tokens([40, 41, 42])
            assert generator.get_logits().shape == (3, 512)
            while not generator.is_done():
                generator.generate_next_token()
                if looks:
                    generator.get_sequence(1)
                    generator.get_logits()
            texts.append([generator.get_sequence(i).tolist() for i in range(2)])
            assert generator.get_next_tokens().shape == (3,)
            with pytest.raises(og.EngineError):
                generator.get_sequence(2)
    assert texts[0] == texts[1]


def test_beams_start_again_from_nothing(data_folder, generator_for, open_model):
    generator = generator_for(open_model("tiny-llama-gqa"), num_beams=3, max_length=20)
    texts = []
    for _ in range(2):
        generator.append_tokens([40, 41, 42])
        while not generator.is_done():
            generator.generate_next_token()
        texts.append(generator.get_sequence(0).tolist())
        for wrong in (lambda: generator.append_tokens([43]), lambda: generator.rewind_to(2)):
            with pytest.raises(og.EngineError, match="num_beams"):
                wrong()
        generator.rewind_to(0)
        assert not generator.is_done()
    assert texts[0] == texts[1]


def test_logits_may_be_set_for_every_beam(generator_for, open_model):
    generator = generator_for(open_model("tiny-llama"), num_beams=2, max_length=20)
    generator.append_tokens([40, 41, 42])
    logits = np.full((2, 512), -100.0, np.float32)
    logits[:, 77] = 0.0
    logits[:, 78] = -1.0
    generator.set_logits(logits)
    generator.generate_next_token()
    assert generator.get_next_tokens().tolist() == [77, 78]
    assert generator.get_sequence(0).tolist() == [40, 41, 42, 77]


def test_the_best_sum_wins_over_the_best_first_token():
    """Four tokens, 3 ends: 0 is likelier at first, but only 1 is followed by a sure token."""
    search = BeamSearch(SearchOptions(num_beams=2), Preferences(), eos_ids=(3,), pad_id=3)
    text = np.array([[2], [2]], np.int32)
    ended = np.zeros(2, np.bool_)
    first = np.log(np.array([[0.5, 0.4, 0.05, 0.05]] * 2, np.float32))
    choice = search.choose(first, text, ended)
    assert choice.tokens.tolist() == [0, 1]
    assert choice.parents.tolist() == [0, 0]
    text = np.array([[2, 0], [2, 1]], np.int32)
    second = np.log(np.array([[0.3, 0.3, 0.3, 0.1], [0.01, 0.01, 0.97, 0.01]], np.float32))
    choice = search.choose(second, text, ended)
    assert (choice.parents[0], choice.tokens[0]) == (1, 2)
    assert search.result(0, np.array([[2, 1, 2], [2, 0, 0]], np.int32)).tolist() == [2, 1, 2]


def test_the_search_ends_when_it_has_enough_texts():
    search = BeamSearch(
        SearchOptions(num_beams=2, num_return_sequences=2), Preferences(), eos_ids=(3,), pad_id=3
    )
    logits = np.log(np.array([[0.3, 0.1, 0.1, 0.5]] * 2, np.float32))
    text = np.array([[2], [2]], np.int32)
    choice = search.choose(logits, text, np.zeros(2, np.bool_))
    assert not choice.ended.any()  # one text has ended, the other goes on
    text = np.concatenate([text[choice.parents], choice.tokens[:, None]], axis=1)
    choice = search.choose(logits, text, choice.ended)
    assert choice.ended.all()
    assert [search.result(i, text).tolist() for i in range(2)] == [[2], [2, 0]]


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_leave_the_search_as_it_was(wrong):
    """At a vocabulary that is searched by blocks; the second prompt's logits are wrong."""
    rng = np.random.default_rng(3)
    options = SearchOptions(batch_size=2, num_beams=2)
    good = rng.standard_normal((4, 5000)).astype(np.float32)
    good[:, 3] = 9.0  # ends, so that the first prompt would note a text
    bad = good.copy()
    bad[2, 70] = wrong
    text, ended = np.full((4, 1), 2, np.int32), np.zeros(4, np.bool_)
    searches = [BeamSearch(options, Preferences(), eos_ids=(3,), pad_id=3) for _ in range(2)]
    with pytest.raises(og.EngineError, match="not a number"):
        searches[0].choose(bad, text, ended)
    choices = [search.choose(good.copy(), text, ended) for search in searches]
    assert choices[0].tokens.tolist() == choices[1].tokens.tolist()
    assert [searches[0].result(i, text).tolist() for i in range(2)] == [
        searches[1].result(i, text).tolist() for i in range(2)
    ]


class _Ways:
    """A grammar of whole texts, and a model of its own for each beginning; both made of a seed."""

    def __init__(self, seed, count):
        self._seed = seed
        draw = np.random.default_rng(seed)
        self.texts = {
            tuple(draw.integers(0, 4, draw.integers(1, 5)).tolist()) for _ in range(count)
        }
        self.rows = np.empty((0, 0), np.int32)  # what stands in each beam

    def forced_token(self, index):
        return None

    def mask(self, index, row):
        begun = tuple(self.rows[index].tolist())
        row[sorted(set(range(5)) - self._next(begun))] = -np.inf

    def _next(self, begun):
        """Tokens that may follow, 4 being the end."""
        size = len(begun)
        found = {text[size] for text in self.texts if text[:size] == begun and len(text) > size}
        return found | ({4} if begun in self.texts else set())

    def logits(self, begun):
        key = [self._seed, *begun, len(begun)]
        return np.random.default_rng(key).normal(0, 2, 5).astype(np.float32)

    def score(self, text):
        """By the model kept to what may follow, over the length, the end not counted."""
        total = 0.0
        for at, token in enumerate([*text, 4]):
            row = self.logits(text[:at]).astype(np.float64)
            allowed = sorted(self._next(text[:at]))
            total += row[token] - np.log(np.exp(row[allowed]).sum())
        return total / len(text)


@pytest.mark.parametrize("seed", range(25))
def test_all_ways_of_a_grammar_are_found_in_their_order(seed):
    """As many beams as there are ways, or more: every text comes out, the likeliest first."""
    ways = _Ways(seed, 1 + seed % 7)
    beams = max(2, len(ways.texts) + seed % 3)
    options = SearchOptions(num_beams=beams, num_return_sequences=beams, length_penalty=1.0)
    search = BeamSearch(options, Preferences(), eos_ids=(4,), pad_id=4)
    text, ended = np.empty((beams, 0), np.int32), np.zeros(beams, np.bool_)
    while not ended.all():
        ways.rows = text
        logits = np.array([ways.logits(tuple(row)) for row in text.tolist()])
        choice = search.choose(logits, text, ended, ways)
        ended = choice.ended
        text = np.concatenate([text[choice.parents], choice.tokens[:, None]], axis=1)
    found = [tuple(search.result(i, text).tolist()) for i in range(len(ways.texts))]
    assert found == sorted(ways.texts, key=ways.score, reverse=True)
    if len(ways.texts) < beams:
        with pytest.raises(og.EngineError, match=f"only {len(ways.texts)} may be written"):
            search.result(len(ways.texts), text)
