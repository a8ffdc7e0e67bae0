"""Reads and edits ONNX graphs in memory: which cache they want, and logits where they are wanted.

One edit puts a Gather before the last projection, so that a prompt of a thousand tokens computes
one row of logits instead of a thousand; the other is in window_edits.py. Weights in external files
are neither read nor copied, and nothing is written to disk. Knows nothing of sessions; where a
graph does not have the known shape it is left as it is, which is slower and equally right.
"""

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import TensorProto, helper

from app.engine.errors import ModelError
from app.engine.window_edits import ATTENTION, Way, forget_before_windows

log = logging.getLogger(__name__)

POSITIONS = "logits_positions"  # our graph input: int64 (K,), columns of the run

# One row of their output depends on the same row of their first input only.
_PROJECTIONS = {"MatMul", "MatMulNBits", "FusedMatMul", "MatMulBnb4"}
_ROWWISE = {"Identity", "Cast", "Add", "Sub", "Mul", "Div", "Tanh", "Neg", "Clip", "Min", "Max"}
_EDIT_LIMIT_BYTES = 1 << 30  # weights inside the file would be held twice while it is edited


@dataclass(frozen=True)
class Graph:
    """What a session is opened from: the edited bytes, or None for the file as it is."""

    data: bytes | None = None
    has_positions: bool = False
    shares_cache: bool | None = None  # None: it could not be read, or has no cache
    windows: Mapping[str, int] = field(default_factory=dict)  # {cache input: positions it keeps}
    shifts_windows: bool = False  # by graph inputs of ours; else the operator does it


def prepare(
    source: Path | bytes,
    *,
    logits: str,
    past: Sequence[str],
    folder: Path,
    name: str,
    window_way: Callable[[int], Way],
) -> Graph:
    """Read the model at `source`; `past` are the patterns (%d) of its key and value inputs.

    `window_way` tells of a window's size how caches of such layers shall hold no more than that.
    """
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    if size > _EDIT_LIMIT_BYTES or name.endswith(".ort"):
        return Graph()
    model = _load(source, name)
    if not all(isinstance(v.name, str) for v in [*model.graph.input, *model.graph.output]):
        raise ModelError(f"{name} cannot be loaded: a name in it is not text.")
    _check_external_files(model.graph, folder, name)
    expression = "|".join(re.escape(pattern).replace("%d", r"\d+") for pattern in past)
    cached = [v.name for v in model.graph.input if re.fullmatch(expression, v.name)]
    shares = shares_cache(model.graph, cached) if cached else None
    windows, shifts = (
        forget_before_windows(model.graph, cached, window_way) if shares else ({}, False)
    )
    has_positions = _insert_positions(model.graph, logits)
    data = model.SerializeToString() if has_positions or windows else None
    return Graph(data, has_positions, shares, windows, shifts)


def shares_cache(graph: onnx.GraphProto, past: Iterable[str]) -> bool:
    """True if only GroupQueryAttention touches the cache: past and present may be one buffer."""
    wanted = set(past)
    found = set()
    for node in graph.node:
        touched = wanted.intersection(node.input)
        if touched and (node.op_type != ATTENTION or not touched <= set(node.input[3:5])):
            return False
        found |= touched
    return bool(wanted) and found == wanted


def grow_model(element_type: int, rank: int, axis: int) -> bytes:
    """The positions from `start` to `end` of x along `axis`, then the filler.

    A graph, as are the next two, so that the copy runs on the device where the cache lies.
    """
    nodes = [
        helper.make_node("Slice", ["x", "start", "end", "axis"], ["kept"]),
        helper.make_node("Concat", ["kept", "filler"], ["y"], axis=axis),
    ]
    extra: dict[str, list[int | str] | None] = {"start": [1], "end": [1], "filler": None}
    return _copying(nodes, element_type, rank, axis, extra=extra)


def cut_model(element_type: int, rank: int, axis: int) -> bytes:
    """The positions from `start` to `end` of x along `axis`."""
    nodes = [helper.make_node("Slice", ["x", "start", "end", "axis"], ["y"])]
    return _copying(nodes, element_type, rank, axis, extra={"start": [1], "end": [1]})


def gather_model(element_type: int, rank: int, axis: int, count: int) -> bytes:
    """The slices of x0, x1 .. along `axis` that `indices` names: y0, y1 .."""

    def port(name: str, i: int, along: str) -> onnx.ValueInfoProto:
        shape = [along if a == axis else f"D{i}_{a}" for a in range(rank)]
        return helper.make_tensor_value_info(f"{name}{i}", element_type, shape)

    indices = helper.make_tensor_value_info("indices", TensorProto.INT64, ["N"])
    nodes = [
        helper.make_node("Gather", [f"x{i}", "indices"], [f"y{i}"], axis=axis) for i in range(count)
    ]
    inputs = [indices, *(port("x", i, "X") for i in range(count))]
    outputs = [port("y", i, "N") for i in range(count)]
    return _serialized(helper.make_graph(nodes, "gather", inputs, outputs))


def zeros_model(element_type: int, rank: int, axis: int) -> bytes:
    """Zeros of the size that the input `shape` tells; `axis` is not used."""
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, [rank])
    zeros = helper.make_tensor_value_info("y", element_type, [f"D{i}" for i in range(rank)])
    node = helper.make_node("Expand", ["zero", "shape"], ["y"])
    zero = helper.make_tensor("zero", element_type, [], [0])
    return _serialized(helper.make_graph([node], "zeros", [shape], [zeros], [zero]))


def _copying(
    nodes: list[onnx.NodeProto],
    element_type: int,
    rank: int,
    axis: int,
    *,
    extra: dict[str, list[int | str] | None],
) -> bytes:
    """A graph x, extra -> y; an extra without a shape is like x but for its size along `axis`."""

    def like_x(name: str, along: str) -> onnx.ValueInfoProto:
        shape = [along if i == axis else f"D{i}" for i in range(rank)]
        return helper.make_tensor_value_info(name, element_type, shape)

    inputs = [like_x("x", "X")]
    for name, shape in extra.items():
        inputs.append(
            like_x(name, "F")
            if shape is None
            else helper.make_tensor_value_info(name, TensorProto.INT64, shape)
        )
    constants = [helper.make_tensor("axis", TensorProto.INT64, [1], [axis])]
    return _serialized(helper.make_graph(nodes, "copy", inputs, [like_x("y", "Y")], constants))


def _serialized(graph: onnx.GraphProto) -> bytes:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


# ---------------------------------------------------------------- the edits


def _insert_positions(graph: onnx.GraphProto, logits: str) -> bool:
    edges = _projection_inputs(graph, logits)
    if not edges:
        return False
    _forget_shapes(graph, logits)
    taken: dict[str, str] = {}
    nodes: list[onnx.NodeProto] = []
    for index, node in enumerate(graph.node):
        if index in edges:
            rows = node.input[0]
            if rows not in taken:
                taken[rows] = f"{rows}@{POSITIONS}"
                nodes.append(helper.make_node("Gather", [rows, POSITIONS], [taken[rows]], axis=1))
            node.input[0] = taken[rows]
        nodes.append(node)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    graph.input.append(helper.make_tensor_value_info(POSITIONS, TensorProto.INT64, ["K"]))
    return True


def _projection_inputs(graph: onnx.GraphProto, logits: str) -> set[int]:
    """Indices of the nodes whose first input may be gathered; empty if the graph is not known."""
    output = next((o for o in graph.output if o.name == logits), None)
    dims = list(output.type.tensor_type.shape.dim) if output is not None else []
    if len(dims) != 3 or dims[1].dim_value or any(i.name == POSITIONS for i in graph.input):
        return set()
    producer = {name: index for index, node in enumerate(graph.node) for name in node.output}
    moving = _moving(graph)
    edges: set[int] = set()
    waiting = [logits]
    while waiting:
        index = producer.get(waiting.pop())
        if index is None:
            return set()
        node = graph.node[index]
        rows = [name for name in node.input if name in moving]
        if node.op_type in _PROJECTIONS and rows == [node.input[0]]:
            edges.add(index)
        elif node.op_type in _ROWWISE and rows:
            waiting.extend(rows)
        else:
            return set()
    return edges


def _moving(graph: onnx.GraphProto) -> set[str]:
    """Tensors that depend on what is fed at each run (weights, also transposed ones, do not)."""
    weights = {tensor.name for tensor in graph.initializer}
    weights |= {tensor.values.name for tensor in graph.sparse_initializer}
    moving = {value.name for value in graph.input} - weights
    for node in graph.node:
        has_body = any(a.type in (a.GRAPH, a.GRAPHS) for a in node.attribute)
        if has_body or moving.intersection(node.input):
            moving.update(node.output)
    return moving


def _forget_shapes(graph: onnx.GraphProto, logits: str) -> None:
    """Drop declared shapes that the edit makes wrong; the runtime infers them again."""
    del graph.value_info[:]
    for output in graph.output:
        if output.name == logits:
            output.type.tensor_type.shape.dim[1].dim_param = "K"


# ---------------------------------------------------------------- files


def _load(source: Path | bytes, name: str) -> onnx.ModelProto:
    try:
        data = source if isinstance(source, bytes) else source.read_bytes()
    except OSError as error:
        raise ModelError(f"{name} cannot be read: {error.strerror or error}.") from error
    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise ModelError(f"{name} is not an ONNX model, or it is cut short.") from error
    if not model.graph.node or not model.graph.output:
        raise ModelError(f"{name} is not an ONNX model, or it is cut short.")
    return model


def _check_external_files(graph: onnx.GraphProto, folder: Path, name: str) -> None:
    """A missing or cut weights file is found here, where the text can name it."""
    ends: dict[str, int] = {}
    for tensor in graph.initializer:
        if tensor.data_location != TensorProto.EXTERNAL:
            continue
        entry = {item.key: item.value for item in tensor.external_data}
        location = entry.get("location", "")
        try:
            end = int(entry.get("offset", 0) or 0) + int(entry.get("length", 0) or 0)
        except ValueError as error:
            raise ModelError(f"{name} does not say where its weights are: {error}.") from error
        ends[location] = max(ends.get(location, 0), end)
    for location, end in ends.items():
        file = folder / location
        if not os.path.isfile(file):  # Path.is_file raises for a name that is too long
            raise ModelError(f"{location} is missing in {folder}; {name} keeps its weights there.")
        if file.stat().st_size < end:
            raise ModelError(
                f"{location} is cut short: {file.stat().st_size} bytes of at least {end}."
            )
