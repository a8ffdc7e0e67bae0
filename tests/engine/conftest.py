"""Models for the engine's tests: the tiny folders, kinds made from them, and a plain oracle."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from app import engine as og

TINY = ["tiny-llama", "tiny-llama-gqa", "tiny-llama-fp16", "tiny-llama-keep", "tiny-spm"]


@pytest.fixture(params=TINY)
def tiny_folder(request: pytest.FixtureRequest, data_folder: Path) -> Path:
    return data_folder / request.param


@pytest.fixture(scope="session")
def open_model(data_folder: Path) -> Callable[[str | Path], og.Model]:
    """Opens a folder of tests/data by name, once."""
    opened: dict[str, og.Model] = {}

    def open_once(name: str | Path) -> og.Model:
        path = data_folder / name
        if str(path) not in opened:
            opened[str(path)] = og.Model(path)
        return opened[str(path)]

    return open_once


@pytest.fixture(scope="session")
def generator_for() -> Callable[..., og.Generator]:
    def make(model: og.Model, **options: Any) -> og.Generator:
        params = og.GeneratorParams(model)
        params.set_search_options(**options)
        return og.Generator(model, params)

    return make


@pytest.fixture(scope="session")
def reference() -> Callable[[Path, Sequence[int]], NDArray[np.float32]]:
    """Logits after a whole text, by one plain session.run with an empty cache: no engine in it."""
    sessions: dict[Path, onnxruntime.InferenceSession] = {}

    def logits(folder: Path, tokens: Sequence[int]) -> NDArray[np.float32]:
        if folder not in sessions:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            sessions[folder] = onnxruntime.InferenceSession(
                str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
            )
        session = sessions[folder]
        length = len(tokens)
        types = {"tensor(float)": np.float32, "tensor(float16)": np.float16,
                 "tensor(int32)": np.int32, "tensor(int64)": np.int64}  # fmt: skip
        given = {
            "input_ids": [list(tokens)],
            "attention_mask": [[1] * length],
            "position_ids": [list(range(length))],
            "num_logits_to_keep": [0],
        }
        feeds = {}
        for info in session.get_inputs():
            kind = types[info.type]
            if info.name in given:
                feeds[info.name] = np.array(given[info.name], kind)
            else:
                feeds[info.name] = np.zeros((1, info.shape[1], 0, info.shape[3]), kind)
        return session.run(["logits"], feeds)[0][0, -1].astype(np.float32)

    return logits


# ---------------------------------------------------------------- kinds that the folders lack


@pytest.fixture(scope="session")
def variant(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A tiny model changed into another kind; the weights, and so the tokens, stay the same."""

    made: dict[str, Path] = {}

    def make(kind: str) -> Path:
        if kind not in made:
            base, change = VARIANTS[kind]
            folder = tmp_path_factory.mktemp(kind) / "ein Modell \u6a21\u578b"
            shutil.copytree(data_folder / base, folder)
            model = onnx.load(folder / "model.onnx")
            (folder / "model.onnx").unlink()
            change(model, folder)
            made[kind] = folder
        return made[kind]

    return make


def _save(model: onnx.ModelProto, folder: Path) -> None:
    onnx.save(model, folder / "model.onnx")


def _external(model: onnx.ModelProto, folder: Path) -> None:
    onnx.save(
        model,
        folder / "model.onnx",
        save_as_external_data=True,
        all_tensors_to_one_file=True,
        location="model.onnx.data",
        size_threshold=512,
    )


def _pruned(model: onnx.ModelProto, folder: Path) -> None:
    """Logits of the last position only, as some exporters make them: [B, 1, V]."""
    graph = model.graph
    graph.initializer.append(helper.make_tensor("last", TensorProto.INT64, [1], [-1]))
    graph.node[-1].output[0] = "all_logits"
    graph.node.append(helper.make_node("Gather", ["all_logits", "last"], ["logits"], axis=1))
    output = next(o for o in graph.output if o.name == "logits")
    output.type.tensor_type.shape.dim[1].dim_value = 1
    _save(model, folder)


def _bfloat16(model: onnx.ModelProto, folder: Path) -> None:
    """Cache and logits as bfloat16, computed in float32 between."""
    graph = model.graph
    casts = []
    for value in graph.input:
        if value.name.startswith("past_"):
            value.type.tensor_type.elem_type = TensorProto.BFLOAT16
            inner = f"{value.name}.wide"
            for node in graph.node:
                for index, name in enumerate(node.input):
                    if name == value.name:
                        node.input[index] = inner
            casts.append(helper.make_node("Cast", [value.name], [inner], to=TensorProto.FLOAT))
    for value in graph.output:
        if value.name == "hidden_states":
            continue
        value.type.tensor_type.elem_type = TensorProto.BFLOAT16
        inner = f"{value.name}.wide"
        for node in graph.node:
            for index, name in enumerate(node.output):
                if name == value.name:
                    node.output[index] = inner
            for index, name in enumerate(node.input):
                if name == value.name:
                    node.input[index] = inner
        graph.node.append(helper.make_node("Cast", [inner], [value.name], to=TensorProto.BFLOAT16))
    nodes = [*casts, *graph.node]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    _save(model, folder)


def _lengths(model: onnx.ModelProto, folder: Path) -> None:
    """No mask: the attention's lengths are graph inputs."""
    graph = model.graph
    attention = next(n for n in graph.node if n.op_type == "GroupQueryAttention")
    last, total = attention.input[5], attention.input[6]
    for node in list(graph.node):
        if last in node.output or total in node.output:
            graph.node.remove(node)
        for index, name in enumerate(node.input):
            if name == last:
                node.input[index] = "seqlens_k"
            elif name == total:
                node.input[index] = "total_sequence_length"
    kept = [value for value in graph.input if value.name != "attention_mask"]
    needed = {name for node in graph.node for name in node.input}
    while True:  # what only fed the removed nodes goes too
        dead = [
            node
            for node in graph.node
            if "attention_mask" in node.input
            or any(n not in needed and n not in _outputs(graph) for n in node.output)
        ]
        if not dead:
            break
        for node in dead:
            graph.node.remove(node)
        needed = {name for node in graph.node for name in node.input}
    del graph.input[:]
    graph.input.extend(kept)
    graph.input.append(helper.make_tensor_value_info("seqlens_k", TensorProto.INT32, ["B"]))
    graph.input.append(
        helper.make_tensor_value_info("total_sequence_length", TensorProto.INT32, [])
    )
    _save(model, folder)


def _outputs(graph: onnx.GraphProto) -> set[str]:
    return {value.name for value in graph.output}


def _fixed(model: onnx.ModelProto, folder: Path) -> None:
    """A cache whose length the graph fixes at 64."""
    for value in model.graph.input:
        if value.name.startswith("past_"):
            value.type.tensor_type.shape.dim[2].dim_value = 64
    for value in model.graph.output:
        if value.name.startswith("present"):
            value.type.tensor_type.shape.dim[2].dim_value = 64
    _save(model, folder)


def _odd_head(model: onnx.ModelProto, folder: Path) -> None:
    """A last projection of a kind that the edit at load does not know."""
    graph = model.graph
    head = next(n for n in graph.node if "lm_head" in n.input)
    hidden, output = head.input[0], head.output[0]
    graph.node.remove(head)
    at = len(graph.node) - 1
    graph.node.insert(
        at, helper.make_node("Einsum", [hidden, "lm_head"], [output], equation="bsh,hv->bsv")
    )
    _save(model, folder)


def _unshared(model: onnx.ModelProto, folder: Path) -> None:
    """GroupQueryAttention, and a config that does not ask for a shared buffer."""
    config = json.loads((folder / "genai_config.json").read_text())
    config["search"]["past_present_share_buffer"] = False
    (folder / "genai_config.json").write_text(json.dumps(config))
    _save(model, folder)


VARIANTS: dict[str, tuple[str, Callable[[onnx.ModelProto, Path], None]]] = {
    "external": ("tiny-llama-gqa", _external),
    "pruned": ("tiny-llama-gqa", _pruned),
    "bfloat16": ("tiny-llama", _bfloat16),
    "lengths": ("tiny-llama-gqa", _lengths),
    "fixed": ("tiny-llama-gqa", _fixed),
    "odd-head": ("tiny-llama-gqa", _odd_head),
    "unshared": ("tiny-llama-gqa", _unshared),
}
