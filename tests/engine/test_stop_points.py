"""A stop at any run of any kind of model or search, and the text that follows is as without it."""

import numpy as np
import pytest

from app import engine as og
from app.engine.session import Session

REGEX = "(yes|no), [0-9]{2,9}(\\.[0-9]{1,9})?"

CASES = {
    "greedy": ("tiny-llama", {}),
    "shared cache": ("tiny-llama-gqa", {}),
    "sampled": ("tiny-llama-gqa", {"do_sample": True, "top_k": 9, "random_seed": 2}),
    "beams": ("tiny-llama", {"num_beams": 3}),
    "beams in a shared cache": ("tiny-llama-gqa", {"num_beams": 3}),
    "guessing": ("tiny-llama-gqa", {}),
    "guided": ("tiny-llama", {}),
    "pipeline": ("tiny-pipeline", {}),
    "whisper": ("tiny-whisper", {}),
    "recurrent": ("recurrent", {}),
    "combined": ("combined", {}),
    "long texts": ("tiny-llama", {"chunk_size": 2}),
    "long texts with beams": ("tiny-llama-gqa", {"chunk_size": 2, "num_beams": 3}),
}


class Stops:
    """Ends the n-th run as a Stop from another thread would."""

    def __init__(self, monkeypatch):
        self.at, self.count, plain = -1, 0, Session.run

        def run(session, binding, stop):
            self.count += 1
            if self.count == self.at:
                raise og.Stopped("The run was stopped.")
            plain(session, binding, stop)

        monkeypatch.setattr(Session, "run", run)


def make(case, open_model, variant, data_folder):
    name, options = CASES[case]
    model = open_model(data_folder / name if name.startswith("tiny") else variant(name))
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=24, **options)
    if case == "guessing":
        params.set_logit_bias({i: 9.0 for i in range(70, 74)})
        params.set_speculative_options(ngram_size=2, ngram_chained_lookup=True)
    if case == "guided":
        params.set_guidance("regex", REGEX)
    generator = og.Generator(model, params)
    if case == "whisper":
        sound = np.random.default_rng(1).standard_normal((1, 80, 3000)).astype(np.float32)
        generator.set_model_input("audio_features", sound)
    return generator


def again_if_stopped(call):
    try:
        call()
    except og.Stopped:
        call()


def text_of(generator):
    again_if_stopped(lambda: generator.append_tokens([70, 71, 72, 70, 71]))
    while not generator.is_done():
        again_if_stopped(generator.generate_next_token)
    return generator.get_sequence(0).tolist()


@pytest.mark.parametrize("case", CASES)
def test_the_text_is_the_same_wherever_it_was_stopped(
    case, open_model, variant, data_folder, monkeypatch
):
    stops = Stops(monkeypatch)
    expected = text_of(make(case, open_model, variant, data_folder))
    assert stops.count >= 4
    for at in range(1, stops.count + 1):
        stops.at, stops.count = at, 0
        generator = make(case, open_model, variant, data_folder)
        assert text_of(generator) == expected, f"stopped at run {at}"
