"""Graphs that read another model's states beside tokens get them for one run, or say so."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from app import engine as og


@pytest.fixture
def folder(data_folder, tmp_path):
    """tiny-llama-gqa, whose embeddings have the input hidden_states (B, T, 32) added to them."""
    import shutil

    copy = tmp_path / "with states"
    shutil.copytree(data_folder / "tiny-llama-gqa", copy)
    model = onnx.load(str(copy / "model.onnx"))
    graph = model.graph
    embedded = next(n for n in graph.node if n.op_type == "Gather" and n.input[0] == "embed")
    plain = embedded.output[0]
    for output in graph.output:  # the name is wanted for the input
        if output.name == "hidden_states":
            output.name = "last_hidden_states"
    for node in graph.node:
        for names in (node.input, node.output):
            for index, name in enumerate(names):
                if name == "hidden_states":
                    names[index] = "last_hidden_states"
        for index, name in enumerate(node.input):
            if name == plain:
                node.input[index] = "with_states"
    states = helper.make_tensor_value_info("hidden_states", TensorProto.FLOAT, ["B", "S", 32])
    graph.input.append(states)
    at = list(graph.node).index(embedded) + 1
    graph.node.insert(at, helper.make_node("Add", [plain, "hidden_states"], ["with_states"]))
    onnx.save(model, str(copy / "model.onnx"))
    return copy


def test_states_are_read_in_the_next_run_and_only_there(
    folder, data_folder, open_model, generator_for
):
    plain = generator_for(open_model("tiny-llama-gqa"))
    plain.append_tokens([40, 41, 42])
    with og.Model(folder) as model:
        generator = generator_for(model)
        generator.set_hidden_states(np.zeros((1, 3, 32), np.float32))
        generator.append_tokens([40, 41, 42])
        np.testing.assert_allclose(generator.get_logits(), plain.get_logits(), atol=1e-5)

        generator.rewind_to(0)
        generator.set_hidden_states(np.ones((1, 3, 32), np.float32))
        generator.append_tokens([40, 41, 42])
        assert np.abs(generator.get_logits() - plain.get_logits()).max() > 1e-2

        generator.generate_next_token()
        with pytest.raises(og.EngineError, match="hidden_states, which is not set"):
            generator.generate_next_token()
        generator.set_hidden_states(np.zeros((1, 1, 32), np.float32))
        generator.generate_next_token()


@pytest.mark.parametrize(
    "states",
    [None, [[0.0]], np.zeros((1, 3, 31), np.float32), np.zeros((1, 3, 32), np.int64)],
    ids=lambda value: str(type(value)),
)
def test_wrong_states_are_refused(folder, generator_for, states):
    with og.Model(folder) as model, pytest.raises((og.EngineError, TypeError)):
        generator_for(model).set_hidden_states(states)


def test_a_graph_without_them_says_so(open_model, generator_for):
    generator = generator_for(open_model("tiny-llama"))
    with pytest.raises(og.EngineError, match="no input named 'hidden_states'"):
        generator.set_hidden_states(np.zeros((1, 1, 32), np.float32))
