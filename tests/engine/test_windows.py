"""Layers that look back a window keep no more than that, and give what whole caches give.

The window's slack is small here, so that short texts leave it many times.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app import engine as og
from app.engine import model as model_module
from app.engine.caches import window
from app.engine.decoder import Decoder
from app.engine.session import Session

# One layer of two and both, where the operator evicts by itself and where we shift the buffers.
KINDS = [f"{kind}, {way}" for kind in ("window", "windows") for way in ("evicts", "shifts")]
SLACK = 8
CACHES = [f"past_key_values.{layer}.{word}" for layer in (0, 1) for word in ("key", "value")]
TEXT = np.random.default_rng(3).integers(3, 500, 240)

relaxed = settings(
    deadline=None,
    max_examples=20,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
ids = st.lists(st.integers(0, 511), min_size=1, max_size=40)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("append"), ids),
        st.tuples(st.just("generate"), st.integers(1, 9)),
        st.tuples(st.just("rewind"), st.integers(0, 60)),
        st.tuples(st.just("logits"), st.none()),
        st.tuples(st.just("fail"), ids),
    ),
    max_size=14,
)


@pytest.fixture(autouse=True)
def small_slack(monkeypatch):
    monkeypatch.setattr(window, "SLACK", SLACK)


def folder_of(kind, variant):
    return variant(kind.split(", ")[0])


@pytest.fixture(scope="module")
def models(variant):
    """(with windows, with whole caches) by kind."""
    opened = {}

    def both(kind):
        if kind not in opened:
            folder, way = folder_of(kind, variant), kind.split(", ")[1]
            found = []
            for chosen in (way, "whole"):
                with pytest.MonkeyPatch().context() as changed:
                    changed.setattr(model_module, "_window_way", lambda *_, way=chosen: way)
                    found.append(og.Model(folder))
            assert [bool(m.session.windows) for m in found] == [True, False]
            assert found[0].session.shifts_windows == (way == "shifts")
            opened[kind] = tuple(found)
        return opened[kind]

    return both


def perform(subject, action, value, monkeypatch):
    length = subject.token_count()
    if action in ("append", "fail") and length + len(value) > 250:
        return
    if action == "append":
        subject.append_tokens(value)
    elif action == "generate" and length:
        for _ in range(value):
            if not subject.is_done():
                subject.generate_next_token()
    elif action == "rewind":
        subject.rewind_to(max(0, length - value))
    elif action == "logits" and length:
        subject.get_logits()
    elif action == "fail":
        with monkeypatch.context() as broken:
            broken.setattr(Session, "run", spoilt(Session.run))
            with pytest.raises(og.EngineError, match="half"):
                subject.append_tokens(value)
        assert subject.token_count() == length


def spoilt(run):
    """The graph has run, and its cache is written, but the run counts as failed."""

    def fails(session, binding, stop):
        run(session, binding, stop)
        raise og.EngineError("It broke off half way.")

    return fails


@pytest.mark.parametrize("kind", KINDS)
@relaxed
@given(actions=actions)
def test_any_order_of_calls_equals_a_fresh_read(
    kind, actions, models, variant, generator_for, reference, monkeypatch
):
    subject = generator_for(models(kind)[0], chunk_size=7, max_length=256)
    for action, value in actions:
        perform(subject, action, value, monkeypatch)
    text = subject.get_sequence(0).tolist()
    if text:
        expected = reference(folder_of(kind, variant), text)
        np.testing.assert_allclose(subject.get_logits()[0], expected, atol=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_text_takes_no_more_than_the_window_and_its_slack(
    kind, models, generator_for, monkeypatch
):
    shapes = []
    for name in ("tensor", "zeros"):
        make = getattr(Session, name)

        def seen(session, port, shape, make=make):
            shapes.append((port, shape))
            return make(session, port, shape)

        monkeypatch.setattr(Session, name, seen)
    subject = generator_for(models(kind)[0], chunk_size=7, max_length=256)
    subject.append_tokens(TEXT[:20])
    while not subject.is_done():
        subject.generate_next_token()
    windows = models(kind)[0].session.windows
    held = {port: max(s[2] for p, s in shapes if p == port) for port in windows}
    assert held == {port: window.capacity_of(size) for port, size in windows.items()}
    for port in windows:
        kept = subject.get_input(port).shape[2]
        assert windows[port] <= kept <= held[port]
    count = sum(held.get(port, 256) for port in CACHES)
    print(f"{kind}: {count} positions held after 256 tokens, {256 * len(CACHES)} without windows")


@pytest.mark.parametrize("kind", KINDS)
def test_logits_are_those_of_whole_caches(kind, models, generator_for):
    subjects = [generator_for(model, chunk_size=7, max_length=256) for model in models(kind)]
    for subject in subjects:
        subject.append_tokens(TEXT[:100])
    for token in TEXT[100:160]:
        held, whole = (subject.get_logits() for subject in subjects)
        np.testing.assert_allclose(held, whole, atol=1e-5)
        for subject in subjects:
            subject.append_tokens([token])


@pytest.mark.peer
@pytest.mark.parametrize("kind", KINDS[2:])  # the peer takes a list of layers otherwise than we
@pytest.mark.parametrize("options", [{}, {"num_beams": 3}], ids=str)
def test_tokens_are_the_peers(kind, options, models, variant):
    peer = pytest.importorskip("onnxruntime_genai")
    texts = []
    for library, model in (og, models(kind)[0]), (peer, peer.Model(str(folder_of(kind, variant)))):
        params = library.GeneratorParams(model)
        params.set_search_options(max_length=160, **options)
        generator = library.Generator(model, params)
        generator.append_tokens(TEXT[:40].astype(np.int32))
        while not generator.is_done():
            generator.generate_next_token()
        texts.append(np.asarray(generator.get_sequence(0)).tolist())
    assert texts[0] == texts[1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_tokens_are_taken_back_for_nothing(kind, models, generator_for, monkeypatch):
    read = []
    run = Decoder.run

    def counting(self, tokens, *arguments, **named):
        read.append(tokens.shape[1])
        return run(self, tokens, *arguments, **named)

    monkeypatch.setattr(Decoder, "run", counting)
    free = SLACK // 2 if kind.endswith("shifts") else SLACK
    subject = generator_for(models(kind)[0], max_length=256)
    for length in range(30, 200, 3):
        subject.rewind_to(0)
        subject.append_tokens(TEXT[: length - free])
        for token in TEXT[length - free : length]:
            subject.append_tokens([token])
        subject.get_logits()
        read.clear()
        subject.rewind_to(length - free + 1)
        subject.append_tokens([7])
        subject.get_logits()
        assert sum(read) <= 2, length


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        dict(batch_size=3),
        dict(num_beams=3, num_return_sequences=2),
        dict(num_beams=2, batch_size=3),
        dict(do_sample=True, top_k=9, temperature=3.0, random_seed=5),
        dict(repetition_penalty=1.4, no_repeat_ngram_size=2),
    ],
    ids=str,
)
def test_every_way_of_searching_gives_what_whole_caches_give(kind, options, models, generator_for):
    texts, rows = [], options.get("batch_size", 1)
    prompt = np.tile(TEXT[:60], (rows, 1))
    for row in range(1, rows):
        prompt[row, 60 - 17 * row :] = 0  # pads
    for model in models(kind):
        subject = generator_for(model, max_length=130, **options)
        subject.append_tokens(prompt)
        while not subject.is_done():
            subject.generate_next_token()
        count = rows * options.get("num_return_sequences", 1)
        texts.append([subject.get_sequence(index).tolist() for index in range(count)])
    assert texts[0] == texts[1]


@pytest.mark.parametrize("kind", KINDS)
def test_guesses_change_nothing(kind, models, generator_for):
    texts = []
    for count in (0, 4):
        subject = generator_for(models(kind)[0], max_length=200)
        if count:
            subject.set_speculative_options(max_draft_tokens=count, ngram_size=2)
        subject.append_tokens(np.tile(TEXT[:12], 5))
        while not subject.is_done():
            subject.generate_next_token()
        texts.append(subject.get_sequence(0).tolist())
        if count:
            assert subject.get_speculative_stats()["draft_tokens_accepted"] > 0
    assert texts[0] == texts[1]


def test_a_window_near_the_whole_context_is_not_worth_it(variant, monkeypatch):
    monkeypatch.setattr(window, "SLACK", 128)
    with og.Model(variant("windows")) as model:
        assert not model.session.windows
