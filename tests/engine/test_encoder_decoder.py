"""Translation (marian) and speech (whisper): against the peer, and against a rewound self."""

import importlib.util
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from app import engine as og


def _load_writer():
    path = Path(__file__).with_name("translation_model.py")
    spec = importlib.util.spec_from_file_location("translation_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = _load_writer()


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return made.write(tmp_path_factory.mktemp("translator"))


@pytest.fixture
def whisper(data_folder):
    return data_folder / "tiny-whisper"


def sound(batch, seed=1):
    return np.random.default_rng(seed).standard_normal((batch, 80, 3000)).astype(np.float32)


def translate(library, folder, rows, **options):
    rows = np.asarray(rows, np.int32)
    params = library.GeneratorParams(library.Model(str(folder)))
    params.set_search_options(batch_size=len(rows), max_length=rows.shape[1] + 12, **options)
    generator = library.Generator(library.Model(str(folder)), params)
    generator.append_tokens(rows)
    while not generator.is_done():
        generator.generate_next_token()
    return [np.asarray(generator.get_sequence(i)).tolist() for i in range(len(rows))]


def transcribe(library, folder, rows, **options):
    rows = np.asarray(rows, np.int32)
    model = library.Model(str(folder))
    params = library.GeneratorParams(model)
    params.set_search_options(batch_size=len(rows), max_length=40, **options)
    generator = library.Generator(model, params)
    inputs = library.NamedTensors()
    inputs["audio_features"] = library.Tensor(sound(len(rows)))
    inputs["input_ids"] = library.Tensor(rows)
    generator.set_inputs(inputs)
    while not generator.is_done():
        generator.generate_next_token()
    return [np.asarray(generator.get_sequence(i)).tolist() for i in range(len(rows))]


OPTIONS = [{}, {"num_beams": 3}, {"do_sample": True, "top_k": 8, "random_seed": 3}]


@pytest.mark.peer
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("rows", [[[5, 6, 7]], [[5, 6, 7, 9], [8, 9, made.PAD, made.PAD]]], ids=len)
def test_translations_are_the_peers(options, rows, translator):
    peer = pytest.importorskip("onnxruntime_genai")
    ours, theirs = (translate(library, translator, rows, **options) for library in (og, peer))
    assert ours == theirs


@pytest.mark.peer
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("batch", [1, 2])
def test_transcriptions_are_the_peers(options, batch, whisper):
    peer = pytest.importorskip("onnxruntime_genai")
    rows = np.random.default_rng(2).integers(6, 500, (batch, 4))
    ours, theirs = (transcribe(library, whisper, rows, **options) for library in (og, peer))
    assert ours == theirs


def plain_translation(folder, source, steps):
    """By the two graphs alone."""
    encoder, decoder = (
        onnxruntime.InferenceSession(folder / f"{n}.onnx", providers=["CPUExecutionProvider"])
        for n in ("encoder", "decoder")
    )
    ids = np.array([[*source, made.END]])
    mask = np.ones(ids.shape, np.int32)
    seen = encoder.run(None, {"input_ids": ids, "attention_mask": mask})[0]
    state = np.zeros((made.LAYERS, 1, made.WIDTH), np.float32)
    token, written = made.START, []
    for step in range(steps):
        logits, state = decoder.run(
            ["logits", "rnn_states"],
            {
                "input_ids": np.array([token]), "encoder_hidden_states": seen,
                "encoder_attention_mask": mask, "rnn_states_prev": state,
                "past_key_values_length": np.array([step]),
            },
        )  # fmt: skip
        token = int(logits[0].argmax())
        written.append(token)
        if token == made.END:
            break
    return written


def test_a_translation_is_what_the_graphs_give(translator):
    for seed in range(5):
        source = np.random.default_rng(seed).integers(1, 60, 6).tolist()
        expected = plain_translation(translator, source, 12)
        expected = expected[:-1] if expected[-1] == made.END else expected
        assert translate(og, translator, [source])[0] == source + expected


@pytest.mark.parametrize("options", [{}, {"num_beams": 2}], ids=["greedy", "beams"])
def test_translations_are_the_same_on_every_device(
    device, options, translator, open_on, generator_for
):
    texts = []
    for place in ("cpu", device):
        with open_on(place, translator) as model:
            generator = generator_for(model, max_length=16, batch_size=2, **options)
            generator.append_tokens([[5, 6, 7, 9], [8, 9, made.PAD, made.PAD]])
            while not generator.is_done():
                generator.generate_next_token()
            texts.append([generator.get_sequence(i).tolist() for i in range(2)])
    assert texts[0] == texts[1]


def test_a_translation_may_be_rewound(translator, generator_for):
    generator = generator_for(og.Model(translator), max_length=20)
    texts = []
    for length in (None, 7, 5, 4, 3, 0):
        if length is not None:
            generator.rewind_to(length)
        if not length:
            if length is not None:
                generator.rewind_to(0)
            generator.append_tokens([5, 6, 7, 8])
        elif length == 3:  # within the source: what is left is a shorter source
            generator.append_tokens([8])
        while not generator.is_done():
            generator.generate_next_token()
        texts.append(generator.get_sequence(0).tolist())
    assert texts == [texts[0]] * 6
    assert generator.get_logits().shape == (1, made.VOCABULARY)


def test_speech_may_be_rewound_and_changed(whisper, open_model, generator_for):
    generator = generator_for(open_model("tiny-whisper"), max_length=30)
    texts = []
    for seed in (1, 2, 1):
        generator.set_model_input("audio_features", sound(1, seed))
        generator.rewind_to(0)
        generator.append_tokens([40, 41, 42])
        while not generator.is_done():
            generator.generate_next_token()
        texts.append(generator.get_sequence(0).tolist())
        generator.rewind_to(10)
        while not generator.is_done():
            generator.generate_next_token()
        assert generator.get_sequence(0).tolist() == texts[-1]
    assert texts[0] == texts[2] != texts[1]


def test_speech_without_sound_says_what_is_missing(open_model, generator_for):
    generator = generator_for(open_model("tiny-whisper"))
    with pytest.raises(og.EngineError, match="audio_features"):
        generator.append_tokens([40])
    with pytest.raises(og.EngineError, match=r"audio_features.*80"):
        generator.set_model_input("audio_features", np.zeros((1, 81, 3000), np.float32))
    generator.set_model_input("audio_features", sound(1))
    generator.append_tokens([40])
