"""Guessing ahead never changes the text: the same tokens for the same seed, with and without."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app import engine as og
from app.engine.speculative import look_up

NAMES = ["tiny-llama", "tiny-llama-gqa", "tiny-llama-fp16", "tiny-llama-keep", "tiny-spm"]
SAMPLED = {"do_sample": True, "top_k": 6, "temperature": 0.5, "random_seed": 11}
few = st.lists(st.integers(10, 13), min_size=4, max_size=24)  # few words, so that guesses exist


def generator_with(model, speculative, **options):
    params = og.GeneratorParams(model)
    params.set_search_options(**options)
    params.set_speculative_options(**speculative)
    return og.Generator(model, params)


def write(generator, prompt):
    generator.append_tokens(prompt)
    tokens = []
    while not generator.is_done():
        before = generator.token_count()
        generator.generate_next_token()
        assert generator.token_count() - before in (0, 1)
        tokens.append(int(generator.get_next_tokens()[0]))
    return tokens, generator.get_sequence(0).tolist()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [{}, SAMPLED, {"repetition_penalty": 1.2}], ids=str)
@settings(
    deadline=None, max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(prompt=few, size=st.integers(2, 3), count=st.integers(1, 8), extras=st.booleans())
def test_texts_are_the_same_with_and_without(
    name, options, open_model, prompt, size, count, extras
):
    model = open_model(name)
    speculative = {
        "ngram_size": size, "max_draft_tokens": count, "ngram_chained_lookup": extras,
        "cooldown": extras, "min_adaptive_k": int(extras),
    }  # fmt: skip
    options = {"max_length": 60, **options}
    plain = write(generator_with(model, {}, **options), prompt)
    assert write(generator_with(model, speculative, **options), prompt) == plain


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-llama-gqa"])
def test_right_guesses_save_runs(name, open_model, monkeypatch):
    """With a bias the text repeats itself, and most tokens come without a run of their own."""
    model = open_model(name)
    runs = []
    plain_run = og.decoder.Decoder.run
    monkeypatch.setattr(
        og.decoder.Decoder, "run", lambda *a, **k: (runs.append(1), plain_run(*a, **k))[1]
    )
    texts, counts = [], []
    for speculative in ({}, {"ngram_size": 2, "max_draft_tokens": 8, "ngram_chained_lookup": True}):
        params = og.GeneratorParams(model)
        params.set_search_options(max_length=60)
        params.set_speculative_options(**speculative)
        params.set_logit_bias({77: 1e4})
        generator = og.Generator(model, params)
        runs.clear()
        texts.append(write(generator, [40, 41]))
        counts.append(len(runs))
    assert texts[0] == texts[1]
    assert counts[0] == 58
    assert counts[1] < 20
    stats = generator.get_speculative_stats()
    assert stats["acceptance_rate"] == 1.0
    assert stats["draft_tokens_accepted"] >= 40
    assert stats["rounds"] == stats["completed_rounds"] + stats["interrupted_rounds"]


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-llama-gqa"])
@settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    actions=st.lists(
        st.one_of(
            st.tuples(st.just("append"), few),
            st.tuples(st.just("generate"), st.integers(1, 8)),
            st.tuples(st.just("rewind"), st.floats(0, 1)),
            st.tuples(st.just("logits"), st.none()),
            st.tuples(st.just("output"), st.none()),
            st.tuples(st.just("set"), st.integers(10, 13)),
        ),
        max_size=12,
    )
)
def test_any_order_of_calls_equals_a_fresh_read(name, actions, open_model, reference, data_folder):
    subject = generator_with(
        open_model(name), {"ngram_size": 2, "max_draft_tokens": 6, "ngram_chained_lookup": True}
    )
    subject.set_logit_bias({i: 8.0 for i in range(10, 14)})
    for action, value in actions:
        length = subject.token_count()
        if action == "append" and length + len(value) < 200:
            subject.append_tokens(value)
        elif action == "generate" and length:
            for _ in range(value):
                if not subject.is_done():
                    subject.generate_next_token()
        elif action == "rewind":
            subject.rewind_to(int(value * length))
        elif action == "logits" and length:
            subject.get_logits()
        elif action == "output" and length:
            logits = subject.get_logits()
            np.testing.assert_allclose(subject.get_output("logits")[:, -1], logits, atol=1e-4)
        elif action == "set" and length and length < 200:
            logits = subject.get_logits()
            logits[0, value] = 1e4
            subject.set_logits(logits)
            subject.generate_next_token()
    text = subject.get_sequence(0).tolist()
    if text:
        expected = reference(data_folder / name, text)
        np.testing.assert_allclose(subject.get_logits()[0], expected, atol=2e-4)


def test_a_guess_is_what_followed_last_time():
    text = np.array([1, 2, 3, 4, 1, 2, 5, 6, 1, 2], np.int32)
    assert look_up(text, 2, 4).tolist() == [5, 6, 1, 2]
    assert look_up(text, 2, 1).tolist() == [5]
    assert look_up(text, 3, 4).tolist() == []
    assert look_up(np.array([7, 7, 7], np.int32), 2, 4).tolist() == [7]
    for size in range(5):
        assert look_up(text[:size], 4, 4).tolist() == []


def test_kinds_that_cannot_take_back_do_not_guess(variant, open_model):
    for kind in ("recurrent", "pruned"):
        generator = generator_with(open_model(variant(kind)), {"ngram_size": 2}, max_length=40)
        generator.set_logit_bias({77: 1e4})
        write(generator, [40, 41])
        assert generator.get_speculative_stats()["rounds"] == 0


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"ngram_size": 1}, "ngram_size"),
        ({"ngram_size": 17}, "17"),
        ({"max_draft_tokens": 0}, "max_draft_tokens"),
        ({"max_draft_tokens": True}, "max_draft_tokens"),
        ({"cooldown": 1}, "cooldown"),
        ({"speed": 1}, "speed"),
    ],
)
def test_wrong_options_name_themselves(open_model, options, shown):
    params = og.GeneratorParams(open_model("tiny-llama"))
    with pytest.raises((og.EngineError, TypeError), match=shown):
        params.set_speculative_options(**options)


def test_speculation_is_for_one_text(open_model):
    for options in ({"batch_size": 2}, {"num_beams": 2}):
        with pytest.raises(og.EngineError, match="ngram_size"):
            generator_with(open_model("tiny-llama"), {"ngram_size": 2}, **options)


@pytest.mark.peer
def test_options_and_defaults_are_the_peers(data_folder):
    peer = pytest.importorskip("onnxruntime_genai")
    ours, theirs = (
        library.GeneratorParams(library.Model(str(data_folder / "tiny-llama")))
        for library in (og, peer)
    )
    assert ours.get_speculative_options() == theirs.get_speculative_options()
    ours_stats = og.Generator(og.Model(data_folder / "tiny-llama"), ours).get_speculative_stats()
    theirs_stats = peer.Generator(
        peer.Model(str(data_folder / "tiny-llama")), theirs
    ).get_speculative_stats()
    assert set(ours_stats) <= set(theirs_stats)


def logits_after(model, text, start):
    """(L, V): one run over all of the text, as guesses are read."""
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=len(text) + 1)
    with og.Generator(model, params) as generator:
        generator.append_tokens(text)
        return generator.get_output("logits")[0, start - 1 :]


@pytest.mark.starter
def test_rounded_weights_differ_only_where_two_tokens_are_as_good(starter_int8):
    """Their kernels round one row otherwise than several: where the two best tokens are closer than
    that, a guess may turn the balance, and nowhere else."""
    config = og.Config(starter_int8)
    config.overlay('{"model": {"decoder": {"session_options": {"intra_op_num_threads": 1}}}}')
    with og.Model(config) as model:
        tokenizer = og.Tokenizer(model)
        quote = "The lighthouse keeper has seven cats, and each of the seven cats has a name. "
        prompt = tokenizer.encode(quote * 4 + "Repeat the text about the seven cats: ").tolist()
        options = {"max_length": len(prompt) + 300}
        texts, rows = [], []
        for speculative in ({}, {"ngram_size": 2, "max_draft_tokens": 8}):
            generator = generator_with(model, speculative, **options)
            generator.append_tokens(prompt)
            while not generator.is_done():
                if not speculative:
                    rows.append(generator.get_logits()[0])
                generator.generate_next_token()
            texts.append(generator.get_sequence(0).tolist())
            stats = generator.get_speculative_stats()
            generator.close()
        assert stats["draft_tokens_accepted"] > 0  # there was something to guess
        plain, guessed = texts
        single = np.array(rows[: len(plain) - len(prompt)])
        several = logits_after(model, plain, len(prompt))[: len(single)]
        assert several.shape == single.shape
        noise = float(np.abs(several - single).max())
        assert 0 < noise < float(np.ptp(single, axis=1).min()) / 4
        best = np.sort(single, axis=1)[:, -2:]
        margins = best[:, 1] - best[:, 0]
        differing = [
            at for at, (one, other) in enumerate(zip(plain, guessed, strict=False)) if one != other
        ]
        if differing:
            at = differing[0] - len(prompt)
            assert margins[at] <= 2 * noise, (at, margins[at], noise)  # each of two may be off
        print(f"kernels differ by {noise:.3f}; first difference: {differing[:1]}")


def test_guessed_texts_have_the_models_own_distribution(open_model):
    """Pairs of sampled tokens against the exact probabilities of all pairs."""
    model = open_model("tiny-llama")
    allowed = [10, 11, 12]
    prompt = [10, 11, 12, 10, 11, 12, 10, 11]  # its end was there before: there are guesses
    banned = [token for token in range(model.config.model.vocab_size) if token not in allowed]

    def probabilities(text):
        params = og.GeneratorParams(model)
        params.set_search_options(max_length=40)
        with og.Generator(model, params) as generator:
            generator.append_tokens(text)
            row = generator.get_logits()[0][allowed].astype(np.float64) / 3.0
        weights = np.exp(row - row.max())
        return weights / weights.sum()

    exact = np.concatenate(
        [share * probabilities([*prompt, token]) for token, share in
         zip(allowed, probabilities(prompt), strict=True)]
    )  # fmt: skip
    seed = int(np.random.default_rng().integers(2**31))
    print("seed", seed)
    counts = np.zeros(9)
    draws = 1500
    params = og.GeneratorParams(model)
    params.set_search_options(
        max_length=len(prompt) + 5, do_sample=True, top_k=0, top_p=1.0, temperature=3.0,
        random_seed=seed,
    )  # fmt: skip
    params.set_banned_tokens(banned)
    params.set_speculative_options(ngram_size=2, max_draft_tokens=4)
    generator = og.Generator(model, params)
    for _ in range(draws):
        generator.append_tokens(prompt)
        while not generator.is_done():
            generator.generate_next_token()
        pair = generator.get_sequence(0)[len(prompt) : len(prompt) + 2].tolist()
        counts[3 * allowed.index(pair[0]) + allowed.index(pair[1])] += 1
        generator.rewind_to(0)
    assert generator.get_speculative_stats()["draft_tokens_accepted"] > 50
    chi_square = float(((counts - draws * exact) ** 2 / (draws * exact)).sum())
    assert chi_square < 35.0, (counts, draws * exact)  # 8 degrees of freedom: once in 40,000


def simulated(prompt, forced, size, count, longest):
    """(rounds, proposed, evaluated, accepted, full, partial, zero) when `forced` is written."""
    text, waiting, rounds = list(prompt), [], []
    is_known = True  # the next logits, after a prompt
    for token in forced:
        if not is_known:
            room = longest - len(text) - 1
            ends = [at for at in range(size, len(text)) if text[at - size : at] == text[-size:]]
            waiting = text[ends[-1] :][: min(count, room)] if ends and room > 0 else []
            if waiting:
                rounds.append([len(waiting), 0, 0])
        text.append(token)
        is_known = False
        if waiting:
            rounds[-1][1] += 1
            is_known = waiting.pop(0) == token
            rounds[-1][2] += is_known
            waiting = waiting if is_known else []
    done = rounds[:-1] if waiting else rounds
    proposed, evaluated, accepted = (sum(column) for column in zip(*rounds, strict=True))
    full = sum(one[0] == one[2] for one in done)
    zero = sum(one[2] == 0 for one in done)
    return (len(rounds), proposed, evaluated, accepted, full, len(done) - full - zero, zero)


def test_every_guess_is_counted_once(open_model):
    """Bans leave one token at a time, so that what is right is known before."""
    model = open_model("tiny-llama")
    everything = set(range(model.config.model.vocab_size))
    seed = int(np.random.default_rng().integers(2**31))
    print("seed", seed)
    draw = np.random.default_rng(seed)
    for _ in range(6):
        prompt = draw.integers(70, 72, 12).tolist()
        forced = draw.integers(70, 72, 40).tolist()
        size, count = int(draw.integers(2, 4)), int(draw.integers(1, 6))
        options = {"ngram_size": size, "max_draft_tokens": count}
        with generator_with(model, options, max_length=60) as generator:
            generator.append_tokens(prompt)
            for token in forced:
                generator.set_banned_tokens(everything - {token})
                generator.generate_next_token()
            assert generator.get_sequence(0).tolist() == prompt + forced
            stats = generator.get_speculative_stats()
        names = (
            "rounds", "draft_tokens_proposed", "draft_tokens_evaluated", "draft_tokens_accepted",
            "full_accept_rounds", "partial_accept_rounds", "zero_accept_rounds",
        )  # fmt: skip
        expected = simulated(prompt, forced, size, count, 60)
        assert tuple(stats[name] for name in names) == expected
