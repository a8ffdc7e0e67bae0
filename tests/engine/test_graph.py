"""The edit at load: logits of the wanted positions only, in memory, and the plain graph else."""

import numpy as np
import onnx
import pytest

from app import engine as og
from app.engine import graph


@pytest.mark.parametrize(
    ("name", "is_edited"),
    [
        ("tiny-llama", True),  # two projections (a LoRA pair) meet before the logits
        ("tiny-llama-gqa", True),
        ("tiny-llama-fp16", True),
        ("tiny-llama-keep", True),
        ("tiny-spm", True),
        ("external", True),
        ("bfloat16", True),
        ("pruned", False),
        ("odd-head", False),
    ],
)
def test_which_graphs_are_edited(name, is_edited, open_model, variant):
    model = open_model(name if name.startswith("tiny") else variant(name))
    assert model.session.has_positions is is_edited


@pytest.mark.parametrize(
    ("name", "shares"),
    [("tiny-llama", False), ("tiny-llama-gqa", True), ("unshared", True), ("external", True)],
)
def test_the_graph_says_whether_past_and_present_are_one(name, shares, open_model, variant):
    model = open_model(name if name.startswith("tiny") else variant(name))
    assert model.shares_cache is shares


def test_a_prompt_computes_one_row_of_logits(open_model, generator_for):
    generator = generator_for(open_model("tiny-llama"))
    generator.append_tokens(list(range(40, 90)))
    assert generator._decoder._output.raw.shape == (1, 1, 512)
    np.testing.assert_allclose(
        generator.get_output("logits")[0, -1], generator.get_logits()[0], atol=1e-4
    )
    assert generator.get_output("logits").shape == (1, 50, 512)
    assert generator.get_output("hidden_states").shape == (1, 50, 32)


def test_nothing_is_written_to_the_model_folder(variant):
    folder = variant("external")
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    og.Model(folder).close()
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_an_output_that_is_the_projections_input_stays_whole(data_folder):
    path = data_folder / "tiny-llama" / "model.onnx"
    edited = graph.prepare(
        path,
        logits="logits",
        past=("past_key_values.%d.key", "past_key_values.%d.value"),
        folder=path.parent,
        name=path.name,
        window_way=lambda window: "whole",
    )
    model = onnx.load_from_string(edited.data)
    onnx.checker.check_model(model)
    gathers = [n for n in model.graph.node if graph.POSITIONS in n.input]
    assert len(gathers) == 2
    assert all(node.output[0].endswith(graph.POSITIONS) for node in gathers)


@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize("kind", ["tiny-llama", "tiny-llama-fp16", "bfloat16"])
def test_cache_tensors_are_cut_and_grown(kind, grows, open_model, variant):
    model = open_model(kind if kind.startswith("tiny") else variant(kind))
    session, name = model.session, "past_key_values.0.key"
    tensor = session.zeros(name, (1, 2, 5, 16))
    resized = session.resize(name, tensor, length=3, capacity=8 if grows else 3)
    assert list(resized.shape()) == [1, 2, 8 if grows else 3, 16]
    gathered = session.gather({name: tensor}, np.array([0, 0, 0]), axis=0)[name]
    assert list(gathered.shape()) == [3, 2, 5, 16]
    assert gathered.element_type() == tensor.element_type()
