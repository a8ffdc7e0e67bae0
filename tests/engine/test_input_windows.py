"""Graphs that take a fixed number of tokens a run: prompts are cut and filled up with pads, and
what is read and written is what graphs of any size give."""

import json
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app import engine as og
from app.engine.caches import window
from app.engine.session import Session

KINDS = ["fixed-runs", "wide-runs", "wide-runs-gqa"]
PLAIN = {"wide-runs": "tiny-llama", "wide-runs-gqa": "tiny-llama-gqa"}
TEXT = np.random.default_rng(4).integers(6, 500, 256)
ids = st.lists(st.integers(2, 511), min_size=1, max_size=20)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("append"), ids),
        st.tuples(st.just("generate"), st.integers(1, 5)),
        st.tuples(st.just("rewind"), st.integers(0, 40)),
        st.tuples(st.just("fail"), ids),
    ),
    max_size=8,
)


@pytest.fixture(scope="module")
def plain_logits(variant, reference, data_folder):
    """By one run of a graph of any size."""
    opened = {}

    def logits(kind, text):
        if kind in PLAIN:
            return reference(data_folder / PLAIN[kind], text)
        if kind not in opened:
            opened[kind] = onnxruntime.InferenceSession(
                variant(kind) / "plain.onnx", providers=["CPUExecutionProvider"]
            )
        feeds = {
            "input_ids": np.array([text]),
            "attention_mask": np.ones((1, len(text)), np.int64),
            "position_ids": np.arange(len(text))[None],
        }
        for info in opened[kind].get_inputs():
            if info.name.startswith("past"):
                shape = (2, 1, 16, 0) if info.name.endswith("key") else (2, 1, 0, 16)
                feeds[info.name] = np.zeros(shape, np.uint8)
            elif info.name not in feeds:
                feeds[info.name] = np.zeros(info.shape, np.float32)
        return opened[kind].run(["logits"], feeds)[0][0, -1]

    return logits


@pytest.mark.parametrize("kind", KINDS)
@settings(
    deadline=None,
    max_examples=15,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(actions=actions)
def test_any_order_of_calls_equals_a_fresh_read(
    kind, actions, variant, open_model, generator_for, plain_logits, monkeypatch
):
    subject = generator_for(open_model(variant(kind)), max_length=230)
    for action, value in actions:
        length = subject.token_count()
        if action == "append":
            subject.append_tokens(value)
        elif action == "generate" and length:
            for _ in range(value):
                if not subject.is_done():
                    subject.generate_next_token()
        elif action == "rewind":
            subject.rewind_to(max(0, length - value))
        elif action == "fail":
            fail_at_second_run(subject, value, monkeypatch)
            assert subject.token_count() == length
    text = subject.get_sequence(0).tolist()
    if text:
        np.testing.assert_allclose(subject.get_logits()[0], plain_logits(kind, text), atol=2e-4)


def fail_at_second_run(subject, tokens, monkeypatch):
    runs, run = [], Session.run

    def fails(session, binding, stop):
        run(session, binding, stop)
        runs.append(session)
        if len(runs) == 2 or len(tokens) <= 6:
            raise og.EngineError("It broke off half way.")

    with monkeypatch.context() as broken:
        broken.setattr(Session, "run", fails)
        with pytest.raises(og.EngineError, match="half"):
            subject.append_tokens(tokens)


@pytest.mark.parametrize("alignment", ["left", "right"])
def test_a_text_fills_the_whole_context(
    alignment, variant, tmp_path, generator_for, plain_logits
):
    folder = tmp_path / "model"
    shutil.copytree(variant("fixed-runs"), folder)
    config = json.loads((folder / "genai_config.json").read_text())
    config["model"]["decoder"]["sliding_window"]["alignment"] = alignment
    (folder / "genai_config.json").write_text(json.dumps(config))
    with og.Model(folder) as model:
        subject = generator_for(model)
        for end in (1, 5, 17, 200, 256):
            subject.append_tokens(TEXT[subject.token_count() : end])
            expected = plain_logits("fixed-runs", TEXT[:end].tolist())
            np.testing.assert_allclose(subject.get_logits()[0], expected, atol=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_logits_of_all_tokens_can_be_had(kind, variant, open_model, generator_for, plain_logits):
    subject = generator_for(open_model(variant(kind)))
    subject.append_tokens(TEXT[:15])
    logits = subject.get_output("logits")
    assert logits.shape[1] == 15
    for end in range(1, 16):
        expected = plain_logits(kind, TEXT[:end].tolist())
        np.testing.assert_allclose(logits[0, end - 1], expected, atol=2e-4)


def test_several_texts_at_once_are_refused_in_words(variant, open_model, generator_for):
    for options in dict(batch_size=2), dict(num_beams=2):
        with pytest.raises(og.EngineError, match="one text at a time"):
            generator_for(open_model(variant("fixed-runs")), **options).append_tokens([[7]])


def test_a_window_that_the_graph_does_not_have_is_told(variant):
    config = og.Config(variant("fixed-runs"))
    config.overlay('{"model": {"decoder": {"sliding_window": {"window_size": 8}}}}')
    with pytest.raises(og.ModelError, match=r"sliding_window\.window_size is 8, .* 6 tokens"):
        og.Model(config)


def test_graphs_of_any_size_get_prompts_in_parts(
    data_folder, generator_for, reference, monkeypatch
):
    config = og.Config(data_folder / "tiny-llama-gqa")
    config.overlay('{"model": {"decoder": {"sliding_window": {"window_size": 7}}}}')
    widths, bind = [], og.generator.Decoder._read
    monkeypatch.setattr(
        og.generator.Decoder,
        "_read",
        lambda self, span, *rest: (widths.append(span.tokens.shape[1]), bind(self, span, *rest))[1],
    )
    with og.Model(config) as model:
        subject = generator_for(model)
        subject.append_tokens(TEXT[:17])
        assert widths == [7, 7, 3]
        expected = reference(data_folder / "tiny-llama-gqa", TEXT[:17].tolist())
        np.testing.assert_allclose(subject.get_logits()[0], expected, atol=2e-4)


@pytest.mark.parametrize("base", ["windows", "recurrent"])
def test_what_pads_would_spoil_is_left_whole_or_refused(
    base, variant, tmp_path, generator_for, reference, monkeypatch
):
    """A cache that would forget text for pads, and a state that would remember the pads."""
    monkeypatch.setattr(window, "SLACK", 8)
    folder = tmp_path / "model"
    shutil.copytree(variant(base), folder)
    model = onnx.load(folder / "model.onnx")
    for value in [*model.graph.input, *model.graph.output]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "S":
                dim.dim_value = 6
    onnx.save(model, folder / "model.onnx")
    with og.Model(folder) as opened:
        if base == "recurrent":
            with pytest.raises(og.EngineError, match="state would remember the pads"):
                generator_for(opened)
            return
        subject = generator_for(opened)
        subject.append_tokens(TEXT[:100])
        expected = reference(variant(base), TEXT[:100].tolist())
        np.testing.assert_allclose(subject.get_logits()[0], expected, atol=2e-4)
