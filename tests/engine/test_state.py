"""Whatever was appended, generated and rewound before: the next logits are those of a fresh read.

The oracle is one plain session.run over the whole text with an empty cache.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from app import engine as og
from app.engine import decoder
from app.engine.caches import shared

FOLDERS = ["tiny-llama", "tiny-llama-gqa", "tiny-llama-fp16", "tiny-llama-keep", "tiny-spm"]
KINDS = ["external", "pruned", "lengths", "odd-head", "unshared"]
TOLERANCE = {"tiny-llama-fp16": 2e-2}

relaxed = settings(
    deadline=None,
    max_examples=25,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

ids = st.lists(st.integers(0, 511), min_size=1, max_size=30)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("append"), ids),
        st.tuples(st.just("prefill"), ids),
        st.tuples(st.just("generate"), st.integers(1, 6)),
        st.tuples(st.just("rewind"), st.floats(0, 1)),
        st.tuples(st.just("logits"), st.none()),
        st.tuples(st.just("set"), st.integers(0, 511)),
        st.tuples(st.just("all logits"), st.none()),
        st.tuples(st.just("stopped"), ids),
    ),
    max_size=14,
)


def perform(subject, action, value):
    """One action, and what the text must then be: the engine's own only where it chose tokens."""
    before = subject.get_sequence(0).tolist()
    if action in ("append", "prefill"):
        if len(before) + len(value) > 256:
            return
        if action == "append":
            subject.append_tokens(value)
        else:
            assert list(subject.prefill(value))[-1] == len(value)
        assert subject.get_sequence(0).tolist() == before + value
    elif action == "generate":
        for _ in range(value):
            if before and not subject.is_done():
                subject.generate_next_token()
        assert subject.get_sequence(0).tolist()[: len(before)] == before
    elif action == "rewind":
        length = int(value * len(before))
        subject.rewind_to(length)
        assert subject.get_sequence(0).tolist() == before[:length]
    elif action == "set" and before and len(before) < 256:
        logits = subject.get_logits()
        logits[0, value] = 1e4
        subject.set_logits(logits)
        subject.generate_next_token()
        assert subject.get_next_tokens().tolist() == [value]
    elif action == "all logits" and before:
        subject.get_logits()
        subject.get_output("logits")
    elif action == "stopped" and len(before) + len(value) <= 256:
        stop = og.Stop()
        stop.set()
        subject.use_stop(stop)
        with pytest.raises(og.Stopped):
            subject.append_tokens(value)
        subject.use_stop(None)
        assert subject.get_sequence(0).tolist() == before
    elif action == "logits" and before:
        subject.get_logits()


def check_against(reference, folder, subject):
    text = subject.get_sequence(0).tolist()
    if not text:
        with pytest.raises(og.EngineError):
            subject.get_logits()
        return
    expected = reference(folder, text)
    logits = subject.get_logits()[0]
    np.testing.assert_allclose(logits, expected, atol=TOLERANCE.get(folder.name, 2e-4))
    if len(text) < 256:
        subject.generate_next_token()
        chosen = subject.get_next_tokens()[0]
        assert expected[chosen] >= expected.max() - TOLERANCE.get(folder.name, 2e-4)


@pytest.mark.parametrize("name", FOLDERS)
@relaxed
@given(actions=actions)
def test_any_order_of_calls_equals_a_fresh_read(
    name, actions, open_model, generator_for, reference, data_folder
):
    subject = generator_for(open_model(name), chunk_size=7)
    for action, value in actions:
        note(f"{action} {value}")
        perform(subject, action, value)
    check_against(reference, data_folder / name, subject)


@pytest.mark.parametrize("name", KINDS)
@settings(relaxed, max_examples=8)
@given(actions=actions)
def test_other_kinds_of_graphs_equal_a_fresh_read_of_the_plain_one(
    name, actions, variant, open_model, generator_for, reference, data_folder
):
    subject = generator_for(open_model(variant(name)), chunk_size=7)
    for action, value in actions:
        note(f"{action} {value}")
        perform(subject, action, value)
    check_against(reference, data_folder / "tiny-llama-gqa", subject)


@pytest.mark.parametrize("step", [1, 3, 16])
@settings(relaxed, max_examples=6)
@given(actions=actions)
def test_a_shared_cache_may_grow_at_any_point(
    step, actions, open_model, generator_for, reference, data_folder, monkeypatch
):
    monkeypatch.setattr(shared, "STEP", step)
    subject = generator_for(open_model("tiny-llama-gqa"), chunk_size=5)
    for action, value in actions:
        note(f"{action} {value}")
        perform(subject, action, value)
    check_against(reference, data_folder / "tiny-llama-gqa", subject)


def test_a_shared_cache_takes_no_more_than_a_step_ahead(open_model, generator_for, monkeypatch):
    monkeypatch.setattr(shared, "STEP", 16)
    subject = generator_for(open_model("tiny-llama-gqa"))
    sizes = []
    subject.append_tokens([40])
    while not subject.is_done():
        subject.generate_next_token()
        sizes.append(subject._decoder._cache._tensors["past_key_values.0.key"].shape()[2])
    assert sizes[0] == 16
    lengths = range(1, len(sizes) + 1)
    assert all(n <= size <= max(16, 2 * n) for n, size in zip(lengths, sizes, strict=True))


@pytest.mark.parametrize("name", FOLDERS)
def test_a_batch_may_be_rewound_anywhere(name, open_model, generator_for):
    rows = [[40, 41, 42, 43, 44], [50, 51, 1, 1, 1], [60, 61, 62, 63, 1]]
    for length in (2, 3, 5, 7):
        rewound, fresh = (
            generator_for(open_model(name), batch_size=3, max_length=14) for _ in range(2)
        )
        for subject in (rewound, fresh):
            subject.append_tokens(rows)
        for _ in range(5):
            rewound.generate_next_token()
        expected = rewound.get_sequence(0).tolist()
        rewound.rewind_to(length)
        assert rewound.token_count() == length
        if length >= 5:
            while not rewound.is_done():
                rewound.generate_next_token()
            while not fresh.is_done():
                fresh.generate_next_token()
            for index in range(3):
                assert rewound.get_sequence(index).tolist() == fresh.get_sequence(index).tolist()
            assert rewound.get_sequence(0).tolist()[: len(expected)] == expected
        rewound.rewind_to(0)
        rewound.append_tokens(rows)
        rewound.generate_next_token()
        assert rewound.token_count() == 6


def test_bfloat16_caches_and_logits_are_read(
    variant, open_model, generator_for, reference, data_folder
):
    """Against the float32 model: bfloat16 keeps 8 bits of a number."""
    subject = generator_for(open_model(variant("bfloat16")), max_length=60, chunk_size=5)
    subject.append_tokens(list(range(40, 60)))
    assert subject.get_output("logits").dtype == np.float32
    assert subject.get_output("present.0.key").shape == (1, 2, 20, 16)
    for _ in range(8):
        subject.generate_next_token()
    subject.rewind_to(15)
    subject.append_tokens([70, 71])
    expected = reference(data_folder / "tiny-llama", [*range(40, 55), 70, 71])
    np.testing.assert_allclose(subject.get_logits()[0], expected, atol=0.05)


def test_a_cache_of_fixed_length_is_used_and_not_exceeded(variant, open_model, generator_for):
    subject = generator_for(open_model(variant("fixed")))
    subject.append_tokens(list(range(100, 160)))
    for _ in range(4):
        subject.generate_next_token()
    subject.generate_next_token()
    with pytest.raises(og.ContextFullError, match="64"):
        subject.get_logits()
    subject.rewind_to(30)
    plain = generator_for(open_model("tiny-llama-gqa"))
    plain.append_tokens(list(range(100, 130)))
    np.testing.assert_allclose(subject.get_logits(), plain.get_logits(), atol=1e-4)


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-llama-gqa"])
def test_end_of_text_ends_the_answer_and_the_next_turn_goes_on(
    name, open_model, generator_for, reference, data_folder
):
    subject = generator_for(open_model(name))
    subject.append_tokens([40, 41, 42])
    logits = subject.get_logits()
    logits[0, 5] = 1e4
    subject.set_logits(logits)
    subject.generate_next_token()
    assert subject.is_done()
    assert subject.get_next_tokens().tolist() == [5]
    assert subject.get_sequence(0).tolist() == [40, 41, 42]
    with pytest.raises(og.EngineError, match="ended"):
        subject.generate_next_token()
    subject.append_tokens([5, 43])
    assert not subject.is_done()
    expected = reference(data_folder / name, [40, 41, 42, 5, 43])
    np.testing.assert_allclose(subject.get_logits()[0], expected, atol=2e-4)


def test_a_full_text_is_done_even_right_after_the_prompt(open_model, generator_for):
    subject = generator_for(open_model("tiny-llama"), max_length=4)
    subject.append_tokens([40, 41, 42, 43])
    assert subject.is_done()
    with pytest.raises(og.ContextFullError):
        subject.generate_next_token()
    subject.rewind_to(2)
    subject.generate_next_token()
    assert subject.token_count() == 3


def test_the_first_token_may_come_from_given_logits(open_model, generator_for):
    subject = generator_for(open_model("tiny-llama"), max_length=8)
    logits = np.zeros(512)
    logits[77] = 1
    subject.set_logits(logits)
    subject.generate_next_token()
    subject.generate_next_token()
    assert subject.get_sequence(0)[0] == 77
    assert subject.token_count() == 2


def test_prefill_says_how_far_it_is_and_may_be_dropped(open_model, generator_for, reference,
                                                       data_folder):  # fmt: skip
    subject = generator_for(open_model("tiny-llama-gqa"), chunk_size=10)
    text = list(range(100, 135))
    assert list(subject.prefill(text)) == [10, 20, 30, 35]
    subject.rewind_to(0)
    for read in subject.prefill(text):
        if read == 20:
            break
    assert subject.get_sequence(0).tolist() == text[:20]
    expected = reference(data_folder / "tiny-llama-gqa", text[:20])
    np.testing.assert_allclose(subject.get_logits()[0], expected, atol=2e-4)


def test_two_generators_of_one_model_do_not_meet(open_model, generator_for):
    first, second = (generator_for(open_model("tiny-llama-gqa"), max_length=40) for _ in range(2))
    first.append_tokens([40, 41])
    second.append_tokens([50, 51, 52])
    while not first.is_done():
        first.generate_next_token()
        if not second.is_done():
            second.generate_next_token()
    alone = generator_for(open_model("tiny-llama-gqa"), max_length=40)
    alone.append_tokens([50, 51, 52])
    while not alone.is_done():
        alone.generate_next_token()
    assert second.get_sequence(0).tolist() == alone.get_sequence(0).tolist()


def test_a_failed_run_changes_nothing(open_model, generator_for, monkeypatch):
    subject = generator_for(open_model("tiny-llama"), chunk_size=4)
    subject.append_tokens([40, 41, 42])
    subject.generate_next_token()
    before = subject.get_sequence(0).tolist()
    plain_run = decoder.Decoder.run
    runs = []

    def fails_at_second_chunk(self, *args, **kwargs):
        runs.append(args)
        if len(runs) == 2:
            raise og.EngineError("The model could not run.")
        return plain_run(self, *args, **kwargs)

    monkeypatch.setattr(decoder.Decoder, "run", fails_at_second_chunk)
    with pytest.raises(og.EngineError):
        subject.append_tokens(list(range(50, 60)))
    assert subject.get_sequence(0).tolist() == before
    subject.append_tokens([60])
    fresh = generator_for(open_model("tiny-llama"))
    fresh.append_tokens([*before, 60])
    np.testing.assert_allclose(subject.get_logits(), fresh.get_logits(), atol=1e-4)
