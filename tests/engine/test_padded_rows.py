"""Rows of a batch that are shorter than others: each is what it would be alone, in every kind."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app import engine as og

KINDS = ["tiny-llama-gqa", "unshared", "recurrent", "convolution", "heads", "combined"]
PAD = 1
PROMPTS = ([40, 41, 42, 43, 44, 45, 46], [50, 51, 52], [60, 61, 62, 63, 64, 65, 66], [70])

relaxed = settings(
    deadline=None,
    max_examples=8,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def folder_of(data_folder, variant):
    return lambda name: data_folder / name if (data_folder / name).is_dir() else variant(name)


def padded(prompts, pad_id):
    width = max(map(len, prompts))
    return np.array([[*prompt, *[pad_id] * (width - len(prompt))] for prompt in prompts])


def alone(model, prompt, count, **options):
    """Tokens that follow a prompt, and the logits after each of them."""
    params = og.GeneratorParams(model)
    params.set_search_options(do_sample=False, **options)
    with og.Generator(model, params) as generator:
        generator.append_tokens(prompt)
        rows = [generator.get_logits()[0]]
        for _ in range(count):
            if not generator.is_done():
                generator.generate_next_token()
            if not generator.is_done():
                rows.append(generator.get_logits()[0])
        return generator.get_sequence(0)[len(prompt) :].tolist(), rows


def batch(model, prompts, **options):
    params = og.GeneratorParams(model)
    params.set_search_options(do_sample=False, batch_size=len(prompts), **options)
    return og.Generator(model, params)


def check_rows(model, generator, prompts, width, count, **options):
    """From here on every row writes what it writes alone, until it ends."""
    expected = [alone(model, prompt, count, **options) for prompt in prompts]
    for at in range(count):
        logits = generator.get_logits()
        for row, (tokens, rows) in enumerate(expected):
            if at < len(rows) and at <= len(tokens):
                np.testing.assert_allclose(logits[row], rows[at], atol=2e-4)
        generator.generate_next_token()
        if generator.is_done():
            break
    for row, (tokens, _) in enumerate(expected):
        assert generator.get_sequence(row)[width : width + len(tokens)].tolist() == tokens


@pytest.mark.parametrize("name", KINDS)
def test_a_short_row_writes_what_it_writes_alone(name, folder_of):
    with og.Model(folder_of(name)) as model:
        tokens = padded(PROMPTS, model.config.model.pad_token_id)
        with batch(model, PROMPTS, max_length=40) as generator:
            generator.append_tokens(tokens)
            check_rows(model, generator, PROMPTS, tokens.shape[1], 8, max_length=40)
            generator.rewind_to(0)  # and all of it once more
            generator.append_tokens(tokens)
            check_rows(model, generator, PROMPTS, tokens.shape[1], 8, max_length=40)


@relaxed
@given(data=st.data())
@pytest.mark.parametrize("name", KINDS)
def test_going_back_to_any_place_is_exact(name, folder_of, data):
    """Also into the pads, and before the end of the longest prompt."""
    with og.Model(folder_of(name)) as model:
        tokens = padded(PROMPTS, model.config.model.pad_token_id)
        kept = tokens.shape[1]
        with batch(model, PROMPTS, max_length=60, min_length=60) as generator:
            generator.append_tokens(tokens)
            for _ in range(data.draw(st.integers(1, 3))):
                for _ in range(data.draw(st.integers(0, 6))):
                    generator.generate_next_token()
                length = data.draw(st.integers(1, generator.token_count()))
                generator.rewind_to(length)
                kept = min(kept, length)
            texts = []
            for row, prompt in enumerate(PROMPTS):
                written = generator.get_sequence(row)[kept:length].tolist()
                texts.append([*prompt[:kept], *written])
            logits = generator.get_logits()
            for row, text in enumerate(texts):
                with batch(model, [text], max_length=60) as fresh:
                    fresh.append_tokens(text)
                    np.testing.assert_allclose(logits[row], fresh.get_logits()[0], atol=2e-4)


@pytest.mark.parametrize("name", ["recurrent", "convolution", "tiny-llama-gqa"])
def test_beams_of_short_rows_are_those_of_the_row_alone(name, folder_of):
    options = {"max_length": 20, "num_beams": 3}
    with og.Model(folder_of(name)) as model:
        tokens = padded(PROMPTS, model.config.model.pad_token_id)
        width = tokens.shape[1]
        with batch(model, PROMPTS, max_length=width + 6, num_beams=3) as generator:
            generator.append_tokens(tokens)
            while not generator.is_done():
                generator.generate_next_token()
            together = [generator.get_sequence(row)[width:].tolist() for row in range(4)]
        for prompt, found in zip(PROMPTS, together, strict=True):
            options["max_length"] = len(prompt) + 6
            # A score is divided by the length, pads and all: alone it is the longest row's that
            # can be compared.
            if len(prompt) < width:
                continue
            assert found[: len(found)] == _beams_alone(model, prompt, options)[: len(found)]


def _beams_alone(model, prompt, options):
    with batch(model, [prompt], **options) as generator:
        generator.append_tokens(prompt)
        while not generator.is_done():
            generator.generate_next_token()
        return generator.get_sequence(0)[len(prompt) :].tolist()


def test_a_batch_that_becomes_long_is_read_again_with_the_other_rotations(variant):
    """Pads in the middle, between a prompt and what was written, are no text then either."""
    folder = variant("long-rope")
    long, short = list(range(40, 60)) * 204 + list(range(60, 72)), list(range(100, 140)) * 100
    assert (len(long), len(short)) == (4092, 4000)
    with og.Model(folder) as model:
        pad = model.config.model.pad_token_id
        tokens = padded([long, short], pad)
        with batch(model, [long, short], max_length=4110, min_length=4110) as generator:
            generator.append_tokens(tokens)
            for _ in range(8):  # over the border of 4096
                generator.generate_next_token()
            logits = generator.get_logits()
            written = [generator.get_sequence(row)[4092:].tolist() for row in range(2)]
            compact = padded([[*long, *written[0]], [*short, *written[1]]], pad)
        with batch(model, [long, short], max_length=4110) as fresh:
            fresh.append_tokens(compact)
            np.testing.assert_allclose(logits, fresh.get_logits(), atol=2e-3)


def test_beams_that_become_long_are_read_again(variant):
    folder = variant("long-rope")
    prompt = list(range(40, 60)) * 204 + list(range(60, 72))
    with og.Model(folder) as model:
        params = og.GeneratorParams(model)
        params.set_search_options(num_beams=2, max_length=4102, min_length=4102, do_sample=False)
        with og.Generator(model, params) as generator:
            generator.append_tokens(prompt)
            for _ in range(7):
                generator.generate_next_token()
            logits = generator.get_logits()
            texts = generator._sequence[:, : generator.token_count()].tolist()
        for row, text in enumerate(texts):
            with batch(model, [text], max_length=4110) as fresh:
                fresh.append_tokens(text)
                np.testing.assert_allclose(logits[row], fresh.get_logits()[0], atol=2e-3)
