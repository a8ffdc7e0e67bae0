"""Samplers and logits steps against numbers worked out by hand, and against plain definitions."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from app import engine as og
from app.engine import logits as steps
from app.engine import nucleus, sampling
from app.engine.config import SearchOptions
from app.engine.select import Preferences, RowSearch, make_sampler

QUARTERS = np.log(np.array([0.5, 0.25, 0.125, 0.125], np.float32))


class At:
    """In place of the random numbers: always this point between 0 and 1."""

    def __init__(self, point):
        words = min(int(point * 2**64), 2**64 - 1)
        self._words = np.array([words % 2**32, words // 2**32], np.uint32)

    def randint(self, *_, **__):
        return self._words


def plain(row, *, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    """(ids, float64 probabilities), by a full sort and nothing clever."""
    with np.errstate(over="ignore"):
        weights = np.exp((row - row.max()) / np.float32(temperature))
    ids = np.argsort(-weights, kind="stable")[: top_k or None]
    if top_k:
        ids = np.argsort(-row, kind="stable")[:top_k]
    cumulative = np.cumsum(weights[ids], dtype=np.float64)
    if 0.0 < top_p < 1.0:
        ids = ids[: np.searchsorted(cumulative, top_p * cumulative[-1]) + 1]
    ids = ids[weights[ids] >= min_p]
    kept = weights[ids].astype(np.float64)
    return ids, kept / kept.sum()


def probabilities(row, *, points=4000, **options):
    """{token: share of evenly spaced points that lead to it}: the distribution, enumerated."""
    row = np.asarray(row, np.float32)
    found = {}
    for index in range(points):
        pick = make_sampler(SearchOptions(do_sample=True, **options), At((index + 0.5) / points))
        token = pick(row)
        found[token] = found.get(token, 0) + 1 / points
    return found


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
    found = probabilities(QUARTERS, temperature=1.0, **options)
    assert found == pytest.approx(expected, abs=1e-3)


def test_temperature_is_applied_before_the_nucleus():
    """At 0.5 the probabilities are squared: 16/22, 4/22, 1/22, 1/22."""
    found = probabilities(QUARTERS, temperature=0.5, top_k=0, top_p=0.75)
    assert found == pytest.approx({0: 0.8, 1: 0.2}, abs=1e-3)


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


ROWS = arrays.arrays(
    np.float32,
    st.integers(1, 300),
    elements=st.floats(-30, 30, width=32)
    | st.sampled_from([0.0, 1.0, -np.inf, float(steps.BANNED), -1e30, 3.0000002, 3.0]),
)


@settings(deadline=None, max_examples=300)
@given(
    ROWS,
    st.sampled_from([0, 0, 1, 7, 50, 400]),
    st.sampled_from([0.1037, 0.5019, 0.9013, 0.9991, 1.0]),  # no sum of a few shares is one
    st.sampled_from([0.0, 0.0, 0.0517, 0.513, 0.9371]),  # none is equal to a quotient of weights
    st.sampled_from([1e-20, 1e-3, 0.7, 1.0, 50.0, 1e6]),
    st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=5),
    st.sampled_from([1, 4, 1024]),
)
@example(np.float32([3.0, 3.0000002, 0.0]), 0, 0.1037, 0.0, 50.0, [0.0], 1)
def test_the_quick_forms_draw_what_a_full_sort_draws(
    row, top_k, top_p, min_p, temperature, points, sorted_at_once
):
    """The point lies within the token's share, up to the rounding of a sum."""
    assume(row.max() > steps.BANNED)
    top_k = min(top_k, len(row))
    options = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p}
    check_against_plain(row, options, points, sorted_at_once)


def check_against_plain(row, options, points, sorted_at_once=1024):
    ids, shares = plain(row, **options)
    ends = np.cumsum(shares)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nucleus, "_SORTED_AT_ONCE", sorted_at_once)
        for point in points:
            token = make_sampler(SearchOptions(do_sample=True, **options), At(point))(row)
            places = np.flatnonzero(ids == token)
            assert len(places) == 1, (token, "was cut away")
            rounding = 1e-6
            place = int(places[0])
            assert ends[place] - shares[place] - rounding <= point <= ends[place] + rounding


@pytest.mark.parametrize("size", [5_000, 49_152, 256_000])
def test_quick_forms_on_long_rows(size):
    random = np.random.default_rng(size)
    print("seed", size)
    for row in (
        random.normal(0, 0.1, size),
        random.normal(0, 2, size),
        np.zeros(size),
        random.integers(0, 3, size),
        random.exponential(1, size),
        np.log(np.arange(1, size + 1)) * -1.1,
        np.where(random.random(size) < 0.5, -np.inf, 1e-7 * random.random(size)),
    ):
        for options in ({"top_p": 0.95}, {"top_p": 1.0}, {"top_p": 1.0, "min_p": 0.3}):
            options = {"temperature": 0.7, "top_k": 0, **options}
            check_against_plain(
                row.astype(np.float32), options, [0.0, *random.random(3), 1 - 1e-12]
            )


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


CROSSING = np.array([0.4, 0.3, 0.2, 0.1])
DRAWN = {
    "all": (np.log(CROSSING), {"top_k": 0, "top_p": 1.0}, CROSSING),
    "top_p_crossing": (
        np.log(CROSSING), {"top_k": 0, "top_p": 0.6}, np.array([4, 3, 0, 0]) / 7,
    ),
    "top_k_and_top_p": (
        np.log(CROSSING), {"top_k": 3, "top_p": 0.8}, np.array([4, 3, 2, 0]) / 9,
    ),
    "top_k_ties": (np.zeros(6), {"top_k": 4, "top_p": 1.0}, np.array([1, 1, 1, 1, 0, 0]) / 4),
    "top_p_ties": (np.zeros(6), {"top_k": 0, "top_p": 0.6}, np.array([1, 1, 1, 1, 0, 0]) / 4),
    "min_p": (
        np.log(CROSSING), {"top_k": 0, "top_p": 1.0, "min_p": 0.45}, np.array([4, 3, 2, 0]) / 9,
    ),
    "min_p_in_top_k": (
        np.log(CROSSING), {"top_k": 4, "top_p": 1.0, "min_p": 0.6}, np.array([4, 3, 0, 0]) / 7,
    ),
    "cold": (
        np.log(CROSSING), {"top_k": 0, "top_p": 1.0, "temperature": 0.5}, CROSSING**2 / 0.3,
    ),
    "hottest": (
        np.log(CROSSING), {"top_k": 0, "top_p": 1.0, "temperature": 1e6}, np.full(4, 0.25),
    ),
    "coldest": (
        np.log(CROSSING), {"top_k": 4, "top_p": 1.0, "temperature": 1e-6}, np.array([1, 0, 0, 0]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_tokens_have_the_exact_distribution(name):
    """Chi-squared of 20,000 draws below the value that one in a million exceeds (5 freedoms)."""
    row, options, exact = DRAWN[name]
    print("seed 11")
    pick = make_sampler(SearchOptions(do_sample=True, **options), np.random.RandomState(11))
    row = row.astype(np.float32)
    check_chi_squared([pick(row) for _ in range(20_000)], exact)


def check_chi_squared(drawn, exact):
    counts = np.bincount(drawn, minlength=len(exact))
    expected = exact * len(drawn)
    assert counts[expected == 0].sum() == 0
    is_some = expected > 0
    assert ((counts - expected)[is_some] ** 2 / expected[is_some]).sum() < 36.0


@pytest.mark.parametrize(
    ("preferences", "options", "exact"),
    [
        (Preferences(bias={3: float(np.log(4))}), {}, np.array([4, 3, 2, 4]) / 13),
        (Preferences(banned=(0,)), {}, np.array([0, 3, 2, 1]) / 6),
        (Preferences(banned=(0,)), {"top_k": 2}, np.array([0, 3, 2, 0]) / 5),
        (Preferences(banned=(0,)), {"top_p": 0.45}, np.array([0, 1, 0, 0])),
        (Preferences(), {"no_repeat_ngram_size": 2}, np.array([4, 0, 2, 1]) / 7),
        (Preferences(), {"no_repeat_ngram_size": 1}, np.array([4, 0, 0, 1]) / 5),
        (Preferences(), {"min_length": 9}, np.array([0, 3, 2, 1]) / 6),
    ],
)
def test_bans_and_biases_come_before_drawing(preferences, options, exact):
    """The text is 2 1 2: with pairs not to be repeated, 1 may not follow."""
    print("seed 1")
    search = RowSearch(
        SearchOptions(do_sample=True, **{"top_k": 0, "top_p": 1.0, **options}),
        preferences,
        eos_ids=(0,),
        pad_id=0,
        random=np.random.RandomState(1),
    )
    logits, text = np.log(CROSSING).astype(np.float32)[None], np.array([[2, 1, 2]], np.int32)
    alive = np.zeros(1, np.bool_)
    drawn = [int(search.choose(logits, text, alive).tokens[0]) for _ in range(5_000)]
    check_chi_squared(drawn, exact)


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


TEXTS = st.lists(st.integers(0, 7), min_size=1, max_size=60)


@given(TEXTS, st.lists(st.integers(1, 7), max_size=9), st.integers(1, 4))
def test_steps_that_follow_a_text_do_what_the_plain_ones_do(text, jumps, size):
    penalty, ban = steps.RepetitionPenalty(1.3), steps.NgramBan(size)
    row = np.linspace(-3, 3, 8, dtype=np.float32)
    end = 1
    for jump in jumps:
        end = min(end + jump, len(text))
        seen = np.array(text[:end], np.int32)
        followed, plainly = row.copy(), row.copy()
        penalty(followed, seen)
        ban(followed, seen)
        steps.penalize_repetition(plainly, seen, 1.3)
        steps.ban_repeated_ngrams(plainly, seen, size)
        assert followed.tolist() == plainly.tolist()


OPTION = {"repetition_penalty": 1.7, "no_repeat_ngram_size": 2, "do_sample": False}


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(st.sampled_from(["append", "generate", "rewind", "logits"]), st.integers(0, 99)),
        min_size=3,
        max_size=12,
    )
)
@example([("generate", 0)] * 6 + [("rewind", 4)])
@example([("generate", 0)] * 6 + [("rewind", 4), ("append", 1), ("append", 2)])
def test_what_was_seen_is_right_after_any_calls(open_model, generator_for, calls):
    """A generator that lived through the calls goes on as one that is given the text at once."""
    model = open_model("tiny-llama")
    generator = generator_for(model, max_length=120, min_length=120, **OPTION)
    generator.append_tokens([9, 8, 9])
    for call, number in calls:
        if call == "append" and generator.token_count() < 60:
            generator.append_tokens([number % 4 + 7, 9])
        elif call == "generate" and generator.token_count() < 110:
            generator.generate_next_token()
        elif call == "rewind":
            generator.rewind_to(max(1, generator.token_count() - number % 5))
        elif call == "logits":
            generator.set_logits(generator.get_logits())
    fresh = generator_for(model, max_length=120, min_length=120, **OPTION)
    fresh.append_tokens(generator.get_sequence(0))
    for _ in range(5):
        generator.generate_next_token()
        fresh.generate_next_token()
    assert generator.get_sequence(0).tolist() == fresh.get_sequence(0).tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"temperature": 0.1, "top_k": -5},
        {"random_seed": 7, "top_p": 2.0},
        {"random_seed": 7, "repetition_penalty": 0.0},
        {"random_seed": 7, "nothing_of_the_kind": 1},
        {"random_seed": 7, "num_beams": 2},
        {"max_length": 10**9},
        {"top_k": "many"},
    ],
)
def test_a_wrong_live_option_changes_nothing(open_model, generator_for, wrong):
    """Neither the options, nor the random numbers, nor the text with what is read of it."""
    options = {"do_sample": True, "temperature": 1.5, "random_seed": 3, "repetition_penalty": 1.2}
    texts = []
    for is_disturbed in (False, True):
        generator = generator_for(open_model("tiny-llama"), max_length=40, min_length=40, **options)
        generator.append_tokens([9, 8, 9])
        while not generator.is_done():
            generator.generate_next_token()
            if is_disturbed:
                with pytest.raises((og.EngineError, ValueError, TypeError)):
                    generator.set_search_options(**wrong)
        texts.append(generator.get_sequence(0).tolist())
    assert texts[0] == texts[1]


def test_a_wrong_live_bias_or_ban_changes_nothing(open_model, generator_for):
    generator = generator_for(open_model("tiny-llama"), max_length=40, do_sample=False)
    generator.append_tokens([9, 8, 9])
    best, second = np.argsort(-generator.get_logits()[0], kind="stable")[:2].tolist()
    generator.set_banned_tokens([best])
    for ids in ([-1], [10**6], ["x"]):
        with pytest.raises((og.EngineError, TypeError)):
            generator.set_banned_tokens(ids)
        with pytest.raises((og.EngineError, TypeError)):
            generator.set_logit_bias({best: 5.0, ids[0]: 1.0})
    generator.generate_next_token()
    assert int(generator.get_next_tokens()[0]) == second


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


@pytest.mark.parametrize("top_k", [0, 4])
def test_min_p_keeps_what_is_likely_beside_the_likeliest(top_k):
    found = probabilities(QUARTERS, temperature=1.0, top_k=top_k, top_p=1.0, min_p=0.49)
    assert found == pytest.approx({0: 2 / 3, 1: 1 / 3}, abs=1e-3)


def test_what_weighs_nothing_is_never_drawn():
    found = sampling.Candidates(np.arange(3), np.array([0.5, 0.5, 0.0], np.float32))
    random = np.random.RandomState(0)
    assert {sampling.draw(found, random) for _ in range(50)} == {0, 1}
