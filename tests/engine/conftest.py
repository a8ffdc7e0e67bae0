"""Models for the engine's tests: the tiny folders, kinds made from them, and a plain oracle."""

import json
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

from app import engine as og
from app.engine import devices

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


OTHER_DEVICES = [
    pytest.param("webgpu", marks=pytest.mark.webgpu),
    *(["cuda"] if not devices.problem("cuda") else []),
]


def _working(name: str) -> str:
    why_not = devices.problem(name)
    if why_not:
        pytest.skip(f"{name} does not work here: {why_not}")
    return name


@pytest.fixture(autouse=True)
def _marked_device_works(request: pytest.FixtureRequest) -> None:
    """A test that is marked for a device is skipped, with the reason, where it does not work."""
    if request.node.get_closest_marker("webgpu"):
        _working("webgpu")


@pytest.fixture(params=["cpu", *OTHER_DEVICES])
def device(request: pytest.FixtureRequest) -> str:
    return _working(request.param)


@pytest.fixture(params=OTHER_DEVICES)
def other_device(request: pytest.FixtureRequest) -> str:
    """One whose memory is not the host's."""
    return _working(request.param)


@pytest.fixture
def open_on() -> Callable[[str, Path], og.Model]:
    """Opens a folder on one device, wherever its config would have it run."""

    def open_there(device: str, folder: Path) -> og.Model:
        config = og.Config(folder)
        config.clear_providers()
        config.append_provider(device)
        model = og.Model(config)
        assert model.device_type.lower() == device
        return model

    return open_there


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
            else:  # free sizes are the number of rows, here 1, and the empty past
                names = {"B": 1, "P": 0}
                feeds[info.name] = np.zeros([names.get(d, d) for d in info.shape], kind)
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


_RECURRENT = {
    "past_key_values.7.recurrent_state": "present.7.recurrent_state",
    "past_key_values.7.conv_state": "present.7.conv_state",
}
_CONVOLUTION = {"past_conv.4": "present_conv.4"}


def _with_states(states: dict[str, str], model: onnx.ModelProto, folder: Path) -> None:
    """Beside the attention, running sums of the embeddings: recurrent or convolution states."""
    graph = model.graph
    embedded = next(n for n in graph.node if n.op_type == "Gather" and n.input[0] == "embed")
    plain = embedded.output[0]
    constants = {"along": np.array(1), "lines": np.array([1]), "part": np.float32(0.1)}
    for name, value in constants.items():
        graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
    nodes = [helper.make_node("CumSum", [plain, "along"], ["sums"]),
             helper.make_node("ReduceSum", [plain, "lines"], ["all"], keepdims=0)]  # fmt: skip
    mixed = plain
    for index, (past, present) in enumerate(states.items()):
        for values, name in ((graph.input, past), (graph.output, present)):
            values.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["B", 32]))
        n = f"state{index}"
        nodes += [
            helper.make_node("Add", [past, "all"], [present]),
            helper.make_node("Unsqueeze", [past, "lines"], [f"{n}.past"]),
            helper.make_node("Add", ["sums", f"{n}.past"], [f"{n}.now"]),
            helper.make_node("Mul", [f"{n}.now", "part"], [f"{n}.part"]),
            helper.make_node("Add", [mixed, f"{n}.part"], [f"{n}.mixed"]),
        ]
        mixed = f"{n}.mixed"
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name == plain:
                node.input[index] = mixed
    at = list(graph.node).index(embedded) + 1
    for offset, node in enumerate(nodes):
        graph.node.insert(at + offset, node)
    _save(model, folder)


def _gaps(model: onnx.ModelProto, folder: Path) -> None:
    """Layers 0 and 1 are called 0 and 5; what lies between has no cache."""
    graph = model.graph
    for names in [*(n.input for n in graph.node), *(n.output for n in graph.node)]:
        for index, name in enumerate(names):
            names[index] = name.replace("values.1.", "values.5.").replace(
                "present.1.", "present.5."
            )
    for value in [*graph.input, *graph.output]:
        renamed = value.name.replace("values.1.", "values.5.").replace("present.1.", "present.5.")
        value.name = renamed
    _save(model, folder)


def _heads(model: onnx.ModelProto, folder: Path) -> None:
    """The second layer has one key-value head, the first two."""
    graph = model.graph
    for tensor in graph.initializer:
        if tensor.name in ("wk1", "wv1"):
            half = onnx.numpy_helper.to_array(tensor)[:, :16]
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(half), tensor.name))
    attention = [n for n in graph.node if n.op_type == "GroupQueryAttention"][1]
    next(a for a in attention.attribute if a.name == "kv_num_heads").i = 1
    for value in [*graph.input, *graph.output]:
        if ".1." in value.name:
            value.type.tensor_type.shape.dim[1].dim_value = 1
    _save(model, folder)


def _window(model: onnx.ModelProto, folder: Path) -> None:
    """The second layer looks back 16 tokens only, and the config says so."""
    attention = [n for n in model.graph.node if n.op_type == "GroupQueryAttention"][1]
    attention.attribute.append(helper.make_attribute("local_window_size", 16))
    config = json.loads((folder / "genai_config.json").read_text())
    window = {"window_size": 16, "slide_inputs": False, "layers": [1]}
    config["model"]["decoder"]["sliding_window"] = window
    (folder / "genai_config.json").write_text(json.dumps(config))
    _save(model, folder)


def _windows(model: onnx.ModelProto, folder: Path) -> None:
    """Both layers look back, each as far as its own window."""
    attention = [n for n in model.graph.node if n.op_type == "GroupQueryAttention"]
    for node, window in zip(attention, (5, 16), strict=True):
        node.attribute.append(helper.make_attribute("local_window_size", window))
    _save(model, folder)


def _combined(model: onnx.ModelProto, folder: Path) -> None:
    """Keys and values of a layer in one tensor [2, B, heads, T, size], as gpt2 has them."""
    graph = model.graph
    graph.initializer.append(helper.make_tensor("first", TensorProto.INT64, [], [0]))
    graph.initializer.append(helper.make_tensor("second", TensorProto.INT64, [], [1]))
    before, after = [], []
    for values, pattern in ((graph.input, "past_key_values.%d."), (graph.output, "present.%d.")):
        kept = [v for v in values if not v.name.startswith(pattern.split("%")[0])]
        del values[:]
        values.extend(kept)
    for layer in range(2):
        for name, values, length in (("past", graph.input, "P"), ("present", graph.output, "T")):
            shape = [2, "B", 2, length, 16]
            values.append(
                helper.make_tensor_value_info(f"{name}_{layer}", TensorProto.FLOAT, shape)
            )
        key, value = (f"past_key_values.{layer}.{word}" for word in ("key", "value"))
        for index, name in (("first", key), ("second", value)):
            node = helper.make_node("Gather", [f"past_{layer}", index], [name], axis=0)
            before.append(node)
        outputs = []
        for word in ("key", "value"):
            whole = f"present.{layer}.{word}"
            outputs.append(f"{whole}.one")
            after.append(helper.make_node("Unsqueeze", [whole, "axis0"], [outputs[-1]]))
        after.append(helper.make_node("Concat", outputs, [f"present_{layer}"], axis=0))
    graph.initializer.append(helper.make_tensor("axis0", TensorProto.INT64, [1], [0]))
    nodes = [
        onnx.NodeProto.FromString(n.SerializeToString()) for n in [*before, *graph.node, *after]
    ]
    del graph.node[:]
    graph.node.extend(nodes)
    config = json.loads((folder / "genai_config.json").read_text())
    config["model"]["type"] = "gpt2"
    decoder = config["model"]["decoder"]
    decoder["inputs"]["past_names"] = "past_%d"
    decoder["outputs"]["present_names"] = "present_%d"
    (folder / "genai_config.json").write_text(json.dumps(config))
    _save(model, folder)


def _long_rope(model: onnx.ModelProto, folder: Path) -> None:
    """Other rotations for all positions once the text has more than 4096 tokens, as in phi3."""
    graph = model.graph
    total = next(n for n in graph.node if n.op_type == "GroupQueryAttention").input[6]
    at = next(i for i, n in enumerate(graph.node) if total in n.output) + 1
    graph.initializer.append(helper.make_tensor("border", TensorProto.INT32, [], [4096]))
    nodes = [helper.make_node("Greater", [total, "border"], ["is_long"])]
    for name, function in (("cos", np.cos), ("sin", np.sin)):
        graph.initializer.remove(next(t for t in graph.initializer if t.name == name))
        branches = []
        for word, base in (("short", 10000.0), ("long", 500.0)):
            angles = np.arange(8192)[:, None] / base ** (np.arange(0, 16, 2) / 16)[None]
            table = onnx.numpy_helper.from_array(function(angles).astype(np.float32), "table")
            output = helper.make_tensor_value_info(f"{name}_{word}", TensorProto.FLOAT, [8192, 8])
            node = helper.make_node("Identity", ["table"], [output.name])
            branches.append(helper.make_graph([node], f"{name}_{word}", [], [output], [table]))
        nodes.append(
            helper.make_node(
                "If", ["is_long"], [name], else_branch=branches[0], then_branch=branches[1]
            )
        )
    for offset, node in enumerate(nodes):
        graph.node.insert(at + offset, node)
    config = json.loads((folder / "genai_config.json").read_text())
    config["model"].update(type="phi3", context_length=8192)
    config["search"]["max_length"] = 8192
    (folder / "genai_config.json").write_text(json.dumps(config))
    _save(model, folder)


def _unshared(model: onnx.ModelProto, folder: Path) -> None:
    """GroupQueryAttention, and a config that does not ask for a shared buffer."""
    config = json.loads((folder / "genai_config.json").read_text())
    config["search"]["past_present_share_buffer"] = False
    (folder / "genai_config.json").write_text(json.dumps(config))
    _save(model, folder)


WINDOW = 6  # tokens that a run of a prompt takes in the next two kinds


def _fixed_runs(model: onnx.ModelProto, folder: Path) -> None:
    """As for neural processors: a graph for WINDOW tokens of a prompt and one for a single token,
    all sizes fixed. The cache is a whole context in bytes, what comes out is what is new of it.

    plain.onnx is the same with free sizes, to compare with.
    """
    config = json.loads((folder / "genai_config.json").read_text())
    decoder, context = config["model"]["decoder"], config["model"]["context_length"]
    stages = {}
    for name, count in (("prompt", WINDOW), ("token", 1), ("plain", 0)):
        copy = onnx.ModelProto.FromString(model.SerializeToString())
        _only_new_in_bytes(copy.graph)
        sizes = {"B": 1, "S": count, "T": context, "P": context - count}
        for value in [*copy.graph.input, *copy.graph.output] if count else []:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param:
                    dim.dim_value = sizes[dim.dim_param]
        onnx.save(copy, folder / f"{name}.onnx")
        if count:
            names = ([v.name for v in values] for values in (copy.graph.input, copy.graph.output))
            stages[name] = {"filename": f"{name}.onnx"}
            stages[name] |= dict(zip(("inputs", "outputs"), names, strict=True))
            stages[name] |= {"run_on_prompt": count > 1, "run_on_token_gen": count == 1}
    config["model"]["type"] = "decoder-pipeline"
    decoder["pipeline"] = [stages]
    slides = {"slide_inputs": True, "slide_key_value_cache": True}
    decoder["sliding_window"] = {"window_size": WINDOW, "pad_value": 128, **slides}
    (folder / "genai_config.json").write_text(json.dumps(config))


def _only_new_in_bytes(graph: onnx.GraphProto) -> None:
    """present becomes what is new, and both it and past bytes; keys are transposed."""
    values = {value.name: value for value in [*graph.input, *graph.output]}
    for value, name in ((np.float32(0.02), "byte.scale"), (np.uint8(128), "byte.zero")):
        graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        past = node.input[0] if node.op_type == "Concat" else ""
        if past.startswith("past_key_values"):
            present, new = past.replace("past_key_values", "present"), node.input[1]
            order = [1, 0, 3, 2] if past.endswith("key") else [1, 0, 2, 3]
            node.input[0], node.input[1] = f"{past}.wide", f"{new}.rounded"
            scale = ["byte.scale", "byte.zero"]
            nodes += [
                helper.make_node("QuantizeLinear", [new, *scale], [f"{new}.bytes"]),
                helper.make_node("Transpose", [f"{new}.bytes"], [present], perm=order),
                helper.make_node("DequantizeLinear", [f"{new}.bytes", *scale], [node.input[1]]),
                helper.make_node("DequantizeLinear", [past, *scale], [f"{past}.turned"]),
                helper.make_node("Transpose", [f"{past}.turned"], [node.input[0]], perm=order),
            ]
            for name, length in ((past, "P"), (present, "S")):
                shape = [2, "B", 16, length] if past.endswith("key") else [2, "B", length, 16]
                kind = helper.make_tensor_value_info(name, TensorProto.UINT8, shape)
                values[name].CopyFrom(kind)
        if not any(name.startswith("present") for name in node.output):
            nodes.append(node)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:], graph.value_info[:]
    graph.node.extend(copies)


def _wide_runs(model: onnx.ModelProto, folder: Path) -> None:
    """One graph that takes WINDOW tokens a run, never fewer; its cache grows."""
    for value in [*model.graph.input, *model.graph.output]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "S":
                dim.dim_value = WINDOW
    _save(model, folder)


VARIANTS: dict[str, tuple[str, Callable[[onnx.ModelProto, Path], None]]] = {
    "external": ("tiny-llama-gqa", _external),
    "pruned": ("tiny-llama-gqa", _pruned),
    "bfloat16": ("tiny-llama", _bfloat16),
    "lengths": ("tiny-llama-gqa", _lengths),
    "fixed": ("tiny-llama-gqa", _fixed),
    "odd-head": ("tiny-llama-gqa", _odd_head),
    "unshared": ("tiny-llama-gqa", _unshared),
    "recurrent": ("tiny-llama", partial(_with_states, _RECURRENT)),
    "convolution": ("tiny-llama", partial(_with_states, _CONVOLUTION)),
    "gaps": ("tiny-llama-gqa", _gaps),
    "window": ("tiny-llama-gqa", _window),
    "windows": ("tiny-llama-gqa", _windows),
    "heads": ("tiny-llama-gqa", _heads),
    "fixed-runs": ("tiny-llama", _fixed_runs),
    "wide-runs": ("tiny-llama", _wide_runs),
    "wide-runs-gqa": ("tiny-llama-gqa", _wide_runs),
    "combined": ("tiny-llama", _combined),
    "long-rope": ("tiny-llama-gqa", _long_rope),
}
