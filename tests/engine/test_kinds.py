"""Kinds of models beyond plain ones: each must give what one plain run of its graph gives."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app import engine as og
from app.engine.beam import BeamSearch
from app.engine.caches.state import MARKS
from app.engine.config import SearchOptions
from app.engine.select import Preferences
from app.engine.stage import Stage

PEER_MODELS = [place / "shared" / "models" / "peer" for place in Path(__file__).parents]

KINDS = ["recurrent", "convolution", "gaps", "heads", "window", "combined", "tiny-pipeline"]

relaxed = settings(
    deadline=None,
    max_examples=12,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
ids = st.lists(st.integers(0, 511), min_size=1, max_size=20)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("append"), ids),
        st.tuples(st.just("generate"), st.integers(1, 5)),
        st.tuples(st.just("rewind"), st.floats(0, 1)),
        st.tuples(st.just("snapshot"), st.none()),
        st.tuples(st.just("logits"), st.none()),
        st.tuples(st.just("all logits"), st.none()),
        st.tuples(st.just("stopped"), ids),
    ),
    max_size=12,
)


def perform(subject, action, value):
    length = subject.token_count()
    if action == "append" and length + len(value) <= 250:
        subject.append_tokens(value)
    elif action == "generate" and length:
        for _ in range(value):
            if not subject.is_done():
                subject.generate_next_token()
    elif action == "rewind":
        subject.rewind_to(int(value * length))
    elif action == "snapshot":
        subject.snapshot_state()
    elif action == "logits" and length:
        subject.get_logits()
    elif action == "all logits" and length:
        subject.get_logits()
        subject.get_output("logits")
    elif action == "stopped" and length + len(value) <= 250:
        stop = og.Stop()
        stop.set()
        subject.use_stop(stop)
        with pytest.raises(og.Stopped):
            subject.append_tokens(value)
        subject.use_stop(None)
        assert subject.token_count() == length


@pytest.fixture
def folder_of(variant, data_folder):
    return lambda name: data_folder / name if name.startswith("tiny") else variant(name)


@pytest.mark.parametrize("name", KINDS)
@relaxed
@given(actions=actions)
def test_any_order_of_calls_equals_a_fresh_read(
    name, actions, folder_of, open_model, generator_for, reference, data_folder
):
    folder = folder_of(name)
    subject = generator_for(open_model(folder), chunk_size=7)
    for action, value in actions:
        perform(subject, action, value)
    text = subject.get_sequence(0).tolist()
    if not text:
        return
    plain = data_folder / "tiny-llama" if name == "tiny-pipeline" else folder
    expected = reference(plain, text)
    np.testing.assert_allclose(subject.get_logits()[0], expected, atol=2e-4)


@pytest.mark.peer
@pytest.mark.parametrize("name", [k for k in KINDS if k not in ("convolution", "window")])
@pytest.mark.parametrize("options", [{}, {"num_beams": 3}], ids=str)
def test_tokens_are_the_peers(name, options, folder_of):
    peer = pytest.importorskip("onnxruntime_genai")
    if name == "recurrent" and options:
        options = {"num_beams": 1}  # the peer does not move recurrent states between beams
    texts = []
    for library in (og, peer):
        model = library.Model(str(folder_of(name)))
        params = library.GeneratorParams(model)
        params.set_search_options(max_length=50, **options)
        generator = library.Generator(model, params)
        generator.append_tokens(np.array([70, 71, 72, 73], np.int32))
        while not generator.is_done():
            generator.generate_next_token()
        texts.append(np.asarray(generator.get_sequence(0)).tolist())
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", [k for k in KINDS if not k.startswith("tiny")])
def test_beams_are_those_of_a_search_that_reads_every_text_afresh(
    name, variant, open_model, generator_for, reference
):
    folder = variant(name)
    subject = generator_for(open_model(folder), num_beams=3, max_length=16)
    subject.append_tokens([70, 71, 72, 73])
    while not subject.is_done():
        subject.generate_next_token()
    search = BeamSearch(SearchOptions(num_beams=3), Preferences(), eos_ids=(0, 5), pad_id=1)
    text = np.array([[70, 71, 72, 73]] * 3, np.int32)
    ended = np.zeros(3, np.bool_)
    while text.shape[1] < 16 and not ended.all():
        logits = np.stack([reference(folder, row) for row in text.tolist()])
        choice = search.choose(logits, text, ended)
        ended = choice.ended
        text = np.concatenate([text[choice.parents], choice.tokens[:, None]], axis=1)
    assert subject.get_sequence(0).tolist() == search.result(0, text).tolist()


@pytest.mark.peer
@pytest.mark.parametrize("name", ["tiny-random-gpt2-fp32", "tiny-random-lfm2-fp32"])
@pytest.mark.parametrize("beams", [1, 3])
def test_the_peers_own_test_models_are_continued_alike(name, beams):
    peer = pytest.importorskip("onnxruntime_genai")
    folder = next((place / name for place in PEER_MODELS if place.exists()), None)
    if folder is None:
        pytest.skip("the peer's test models are not part of the project")
    texts = []
    for library in (og, peer):
        model = library.Model(str(folder))
        params = library.GeneratorParams(model)
        params.set_search_options(max_length=40, num_beams=beams)
        generator = library.Generator(model, params)
        generator.append_tokens(np.arange(5, 15, dtype=np.int32))
        while not generator.is_done():
            generator.generate_next_token()
        texts.append(np.asarray(generator.get_sequence(0)).tolist())
    assert texts[0] == texts[1]


def test_a_state_goes_back_to_a_snapshot_for_nothing(variant, open_model, generator_for):
    subject = generator_for(open_model(variant("recurrent")))
    subject.append_tokens(list(range(40, 50)))
    for _ in range(4):
        subject.generate_next_token()
    subject.get_logits()
    subject.snapshot_state()
    at = subject.token_count()
    expected = subject.get_logits()
    for _ in range(4):
        subject.generate_next_token()
    subject.rewind_to(at)
    assert subject._decoder.length == at
    np.testing.assert_allclose(subject.get_logits(), expected, atol=1e-4)
    subject.rewind_to(12)  # no snapshot there: back to the end of the prompt
    assert subject._decoder.length == 10
    for _ in range(3 * MARKS):
        subject.append_tokens([77])
    assert len(subject._decoder._cache._parts[0]._marks) == MARKS


def plain_logits(folder, text, features):
    """By the embedding's and the decoder's graph alone."""
    embedding, decoder = (
        onnxruntime.InferenceSession(folder / f"{n}.onnx", providers=["CPUExecutionProvider"])
        for n in ("embedding", "text")
    )
    embeds = embedding.run(None, {"input_ids": np.array([text]), "image_features": features})[0]
    positions = np.arange(len(text))[None]
    feeds = {"inputs_embeds": embeds, "attention_mask": np.ones_like(positions)}
    for info in decoder.get_inputs():
        if info.name == "position_ids":
            three = len(info.shape) == 3
            feeds[info.name] = np.stack([positions] * 3) if three else positions
        elif info.name.startswith("past"):
            feeds[info.name] = np.zeros((1, 2, 0, 16), np.float32)
    return decoder.run(["logits"], feeds)[0][0, -1]


@pytest.mark.parametrize("name", ["tiny-gemma3", "tiny-qwen25vl"])
def test_text_goes_through_the_embedding(name, open_model, generator_for, data_folder):
    subject = generator_for(open_model(name), chunk_size=5, max_length=60)
    subject.append_tokens(list(range(40, 52)))
    for _ in range(4):
        subject.generate_next_token()
    subject.rewind_to(14)
    subject.append_tokens([70, 71])
    text = subject.get_sequence(0).tolist()
    expected = plain_logits(data_folder / name, text, np.zeros((0, 32), np.float32))
    np.testing.assert_allclose(subject.get_logits()[0], expected, atol=2e-4)


def test_features_made_by_hand_are_seen_once(open_model, generator_for, data_folder):
    folder = data_folder / "tiny-gemma3"
    image_id = og.Tokenizer(folder).to_token_id("<image_soft_token>")
    text = [40, 41, *[image_id] * 6, 42, 43]
    features = np.random.default_rng(1).standard_normal((6, 32)).astype(np.float32)
    inputs = og.NamedTensors()
    inputs["input_ids"] = np.array(text)
    inputs["image_features"] = features
    subject = generator_for(open_model("tiny-gemma3"), chunk_size=3, max_length=60)
    subject.set_inputs(inputs)
    np.testing.assert_allclose(
        subject.get_logits()[0], plain_logits(folder, text, features), atol=2e-4
    )
    subject.append_tokens([44])
    np.testing.assert_allclose(
        subject.get_logits()[0], plain_logits(folder, [*text, 44], features), atol=2e-4
    )


def test_embeddings_may_be_given_in_place_of_ids(open_model, generator_for, data_folder):
    folder = data_folder / "tiny-gemma3"
    subject = generator_for(open_model("tiny-gemma3"), max_length=60)
    subject.append_tokens([50, 51, 52])
    embeds = subject.get_input("inputs_embeds")
    assert embeds.shape == (1, 3, 32)
    subject.rewind_to(0)
    subject.set_model_input("inputs_embeds", embeds)
    subject.append_tokens([0, 0, 0])  # their places in the text
    nothing = np.zeros((0, 32), np.float32)
    expected = plain_logits(folder, [50, 51, 52], nothing)
    np.testing.assert_allclose(subject.get_logits()[0], expected, atol=2e-4)
    subject.generate_next_token()
    text = [50, 51, 52, *subject.get_sequence(0).tolist()[3:]]
    expected = plain_logits(folder, text, nothing)
    np.testing.assert_allclose(subject.get_logits()[0], expected, atol=2e-4)


@pytest.mark.peer
@pytest.mark.parametrize("name", ["tiny-gemma3", "tiny-qwen25vl"])
def test_text_in_models_that_see_is_the_peers(name, data_folder):
    peer = pytest.importorskip("onnxruntime_genai")
    texts = []
    for library in (og, peer):
        params = library.GeneratorParams(model := library.Model(str(data_folder / name)))
        params.set_search_options(max_length=40)
        generator = library.Generator(model, params)
        generator.append_tokens(np.arange(40, 50, dtype=np.int32))
        while not generator.is_done():
            generator.generate_next_token()
        texts.append(np.asarray(generator.get_sequence(0)).tolist())
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["recurrent", "convolution", "combined"])
def test_batches_of_equal_length_are_what_each_is_alone(name, variant, open_model, generator_for):
    rows = np.random.default_rng(3).integers(6, 500, (3, 6))
    model = open_model(variant(name))
    together = generator_for(model, batch_size=3, max_length=16)
    together.append_tokens(rows)
    for _ in range(10):
        together.generate_next_token()
    for index, row in enumerate(rows):
        alone = generator_for(model, max_length=16)
        alone.append_tokens(row)
        for _ in range(10):
            alone.generate_next_token()
        assert together.get_sequence(index).tolist() == alone.get_sequence(0).tolist()


def test_a_text_that_becomes_long_is_read_again_with_the_other_rotations(
    variant, open_model, generator_for, reference
):
    """phi3 turns all positions otherwise from 4097 tokens on, also those that were read before."""
    folder = variant("long-rope")
    text = np.random.default_rng(9).integers(6, 500, 4110).tolist()
    subject = generator_for(open_model(folder), max_length=8192)
    subject.append_tokens(text[:4095])
    np.testing.assert_allclose(subject.get_logits()[0], reference(folder, text[:4095]), atol=5e-4)
    for _ in range(3):  # over the border by single tokens
        subject.generate_next_token()
    written = subject.get_sequence(0).tolist()
    np.testing.assert_allclose(subject.get_logits()[0], reference(folder, written), atol=5e-4)
    subject.rewind_to(4000)  # and back
    np.testing.assert_allclose(subject.get_logits()[0], reference(folder, text[:4000]), atol=5e-4)
    subject.append_tokens(text[4000:])  # and over it in one go
    np.testing.assert_allclose(subject.get_logits()[0], reference(folder, text), atol=5e-4)
    assert subject.token_count() == len(text)


def test_a_graph_that_only_gives_logits_runs_for_the_last_chunk_of_a_prompt(
    data_folder, tmp_path, generator_for, monkeypatch
):
    folder = tmp_path / "pipeline"
    shutil.copytree(data_folder / "tiny-pipeline", folder)
    config = json.loads((folder / "genai_config.json").read_text())
    config["model"]["decoder"]["pipeline"][0]["head"]["is_lm_head"] = True
    (folder / "genai_config.json").write_text(json.dumps(config))
    runs = []
    run = Stage.run
    monkeypatch.setattr(
        Stage, "run", lambda stage, stop: (runs.append(stage.part.name), run(stage, stop))[1]
    )
    prompt = list(range(40, 57))
    with og.Model(folder) as model, og.Model(data_folder / "tiny-pipeline") as plain:
        expected = generator_for(plain, max_length=40)
        expected.append_tokens(prompt)
        generator = generator_for(model, max_length=40, chunk_size=5)
        runs.clear()
        generator.append_tokens(prompt)
        assert [runs.count(name) for name in ("embeds", "body", "head")] == [4, 4, 1]
        np.testing.assert_allclose(generator.get_logits(), expected.get_logits(), atol=1e-5)
        for _ in range(6):
            generator.generate_next_token()
            expected.generate_next_token()
        assert generator.get_sequence(0).tolist() == expected.get_sequence(0).tolist()
        generator.rewind_to(0)
        steps = generator.prefill(prompt)
        assert next(steps) == 5
        steps.close()  # what was read stays, and its logits come when they are wanted
        expected.rewind_to(0)
        expected.append_tokens(prompt[:5])
        np.testing.assert_allclose(generator.get_logits(), expected.get_logits(), atol=1e-5)
        generator.rewind_to(0)
        next(generator.prefill(prompt))
        generator.generate_next_token()
        expected.generate_next_token()
        assert generator.get_sequence(0).tolist() == expected.get_sequence(0).tolist()
