"""Samplers and logits steps against numbers worked out by hand, and against plain definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from app import engine as og
from app.engine import logits as steps
from app.engine import sampling
from app.engine.config import SearchOptions
from app.engine.select import Preferences, RowSearch

QUARTERS = np.log(np.array([0.5, 0.25, 0.125, 0.125], np.float32))


def probabilities(row, **options):
    found = sampling.candidates(np.asarray(row, np.float32), **options)
    return dict(zip(found.ids.tolist(), found.probabilities.tolist(), strict=True))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"top_k": 0, "top_p": 1.0}, {0: 0.5, 1: 0.25, 2: 0.125, 3: 0.125}),
        ({"top_k": 2, "top_p": 1.0}, {0: 2 / 3, 1: 1 / 3}),
        ({"top_k": 3, "top_p": 0.0}, {0: 4 / 7, 1: 2 / 7, 2: 1 / 7}),
        ({"top_k": 0, "top_p": 0.4}, {0: 1.0}),
        ({"top_k": 0, "top_p": 0.6}, {0: 2 / 3, 1: 1 / 3}),
        ({"top_k": 0, "top_p": 0.0}, {0: 1.0}),
        ({"top_k": 3, "top_p": 0.7}, {0: 2 / 3, 1: 1 / 3}),
    ],
)
def test_four_tokens_by_hand(options, expected):
    assert probabilities(QUARTERS, temperature=1.0, **options) == pytest.approx(expected)


def test_temperature_is_applied_before_the_nucleus():
    """At 0.5 the probabilities are squared: 16/22, 4/22, 1/22, 1/22."""
    found = probabilities(QUARTERS, temperature=0.5, top_k=0, top_p=0.75)
    assert found == pytest.approx({0: 0.8, 1: 0.2})


@pytest.mark.parametrize("temperature", [1e-50, 1e-45, 1e-30, 0.0])
def test_a_temperature_next_to_nothing_takes_the_likeliest(temperature):
    row = [1.0, 2.0, 1.5, -np.inf]
    assert select(row, do_sample=True, temperature=temperature, top_k=3) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("penalty", [1e-6, 1.1, 1e6])
def test_what_is_banned_stays_banned_under_any_penalty(penalty):
    row = np.array([steps.BANNED, 1000.0, -1000.0, 0.0], np.float32)
    steps.penalize_repetition(row, np.arange(4, dtype=np.int32), penalty)
    assert row[1:].tolist() == pytest.approx([1000 / penalty, -1000 * penalty, 0], rel=1e-5)
    if penalty >= 1:
        assert row[0] <= steps.BANNED


def test_the_nucleus_of_a_flat_tail_is_exact_in_a_large_vocabulary():
    """The case in which the peer cuts nothing (SPEC 3.3)."""
    row = np.full(1000, -20.0, np.float32)
    row[[500, 3, 999, 7]] = [2, 1, 0, -1]
    found = probabilities(row, temperature=1.0, top_k=0, top_p=0.6)
    assert list(found) == [500]
    assert list(probabilities(row, temperature=1.0, top_k=0, top_p=0.7)) == [500, 3]


@settings(deadline=None)
@given(
    arrays.arrays(
        np.float32,
        st.integers(1, 700),
        elements=st.floats(-30, 30, width=32) | st.sampled_from([0.0, 1.0]),
    ),
    st.integers(1, 300),
)
def test_the_largest_are_those_of_a_stable_sort(row, count):
    expected = np.argsort(-row, kind="stable")[:count]
    assert sampling.largest(row, count).tolist() == expected.tolist()


@pytest.mark.parametrize("size", [4096, 49152])
def test_the_largest_of_a_long_row_with_many_equals(size):
    random = np.random.default_rng(size)
    for _ in range(20):
        row = random.integers(0, 40, size).astype(np.float32)
        row[random.integers(0, size, 5)] = -np.inf
        for count in (1, 7, 50, 256, size):
            expected = np.argsort(-row, kind="stable")[:count]
            assert sampling.largest(row, count).tolist() == expected.tolist()


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.999), st.floats(0.2, 3))
def test_a_nucleus_is_the_smallest_head_that_reaches_top_p(seed, top_p, temperature):
    row = np.random.default_rng(seed).normal(0, 3, 3000).astype(np.float32)
    found = sampling.candidates(row, temperature=temperature, top_k=0, top_p=top_p)
    exact = np.exp((row.astype(np.float64) - row.max()) / temperature)
    exact = np.sort(exact / exact.sum())[::-1]
    head = np.cumsum(exact)[len(found.ids) - 1]
    assert head >= top_p - 1e-4
    assert len(found.ids) == 1 or np.cumsum(exact)[len(found.ids) - 2] < top_p + 1e-4


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": 0, "top_p": 1.0},
        {"top_k": 3, "top_p": 0.0},
        {"top_k": 0, "top_p": 0.8},
    ],
)
def test_drawn_tokens_have_the_exact_distribution(options):
    """Chi-squared of 20,000 draws below the value that one in a million exceeds."""
    found = sampling.candidates(QUARTERS, temperature=1.3, **options)
    random = np.random.RandomState(11)
    drawn = [sampling.draw(found, random) for _ in range(20_000)]
    counts = np.array([drawn.count(i) for i in found.ids.tolist()])
    expected = found.probabilities.astype(np.float64) * len(drawn)
    assert ((counts - expected) ** 2 / expected).sum() < 30.7
    assert counts.sum() == len(drawn)


def test_a_single_candidate_uses_no_random_number():
    random = np.random.RandomState(5)
    sampling.draw(sampling.Candidates(np.array([7]), np.ones(1, np.float32)), random)
    assert random.randint(2**31) == np.random.RandomState(5).randint(2**31)


def test_the_repetition_penalty_counts_each_id_once():
    row = np.array([2.0, -2.0, 3.0, 0.0], np.float32)
    steps.penalize_repetition(row, np.array([0, 1, 0, 3, 1], np.int32), 2.0)
    assert row.tolist() == [1.0, -4.0, 3.0, 0.0]


@pytest.mark.parametrize(
    ("text", "size", "banned"),
    [
        ([1, 2, 3, 1, 2], 3, {3}),
        ([1, 2, 3, 1, 2], 2, {3}),
        ([1, 2, 1, 3, 1], 2, {2, 3}),
        ([1, 2, 3], 1, {1, 2, 3}),
        ([1, 2], 3, set()),
        ([5, 5, 5], 2, {5}),
        ([1, 2, 3], 0, set()),
    ],
)
def test_ngrams_are_not_repeated(text, size, banned):
    row = np.zeros(8, np.float32)
    steps.ban_repeated_ngrams(row, np.array(text, np.int32), size)
    assert set(np.flatnonzero(row).tolist()) == banned


def select(row, text=(1,), preferences=None, **options):
    search = RowSearch(
        SearchOptions(**options),
        preferences or Preferences(),
        eos_ids=(0,),
        pad_id=9,
        random=np.random.RandomState(1),
    )
    logits = np.array([row], np.float32)
    before = logits.copy()
    choice = search.choose(logits, np.array([text], np.int32), np.zeros(1, np.bool_))
    assert (logits == before).all()
    return int(choice.tokens[0])


def test_equals_go_to_the_lowest_id():
    assert select([0, 5, 5, 1]) == 1


def test_end_of_text_waits_for_min_length():
    assert select([9, 5, 4, 1], min_length=3) == 1
    assert select([9, 5, 4, 1], text=(1, 2, 3), min_length=3) == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("options", [{}, {"do_sample": True, "top_k": 3}])
def test_numbers_that_are_none_raise(bad, options):
    with pytest.raises(og.EngineError, match="not a number"):
        select([1, bad, 2, 3], **options)


def test_a_row_without_any_allowed_token_raises():
    with pytest.raises(og.EngineError, match="banned"):
        select([-np.inf] * 4)


def test_tokens_may_be_preferred_and_banned():
    assert select([0, 5, 3, 1], preferences=Preferences(bias={2: 2.5})) == 2
    assert select([0, 5, 3, 1], preferences=Preferences(banned=(1,))) == 2
    assert select([0, 5, 3, 1], preferences=Preferences(bias={2: 9.0}, banned=(2,))) == 1


def test_min_p_keeps_what_is_likely_beside_the_likeliest():
    found = sampling.cut_unlikely(
        sampling.candidates(QUARTERS, temperature=1.0, top_k=0, top_p=1.0), 0.5
    )
    assert found.ids.tolist() == [0, 1]
    assert found.probabilities.tolist() == pytest.approx([2 / 3, 1 / 3])


def test_what_weighs_nothing_is_never_drawn():
    found = sampling.Candidates(np.arange(3), np.array([0.5, 0.5, 0.0], np.float32))
    random = np.random.RandomState(0)
    assert {sampling.draw(found, random) for _ in range(50)} == {0, 1}
