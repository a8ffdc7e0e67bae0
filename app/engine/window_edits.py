"""Lets attention that looks back a window forget what lies before it: edits of a graph in memory.

Two ways. The operator evicts by itself ("evicts"), which ONNX Runtime has on the CPU. Or
("shifts") the cache's buffers begin at a later token than the text does: then the lengths that
attention is told, and the rows of the rotary tables, are counted from there, by graph inputs of
ours. WebGPU's attention takes positions from the lengths and no position_ids, hence the tables.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import onnx
from onnx import TensorProto, helper

Way = Literal["whole", "evicts", "shifts"]

ATTENTION = "GroupQueryAttention"
_WINDOW, _EVICTS = "local_window_size", "sliding_window_cache"  # of its attributes
_LAST, _TOTAL, _COS, _POSITIONS = 5, 6, 7, 9  # of its inputs
_WORDS = ("shift", "total", "first", "end")


def shift_inputs(window: int) -> tuple[str, str, str, str]:
    """The graph inputs of layers with this window: how many tokens lie before the buffers (int32),
    how many after that (int32), and the rows of the rotary tables (int64 (1,), twice)."""
    shift, total, first, end = (f"window_{window}@{word}" for word in _WORDS)
    return shift, total, first, end


def forget_before_windows(
    graph: onnx.GraphProto, cached: Sequence[str], way_of: Callable[[int], Way]
) -> tuple[dict[str, int], bool]:
    """({cache input: its window}, whether they are shifted); all in one way."""
    if any(_is_fixed(value) for value in graph.input if value.name not in cached):
        return {}, False  # pads fill its runs up: they would push text out
    free = {value.name for value in graph.input if not _length(value)} & set(cached)
    found: list[tuple[onnx.NodeProto, int, Way]] = []
    for node in graph.node:
        if node.op_type != ATTENTION or not set(node.input[3:5]) <= free:
            continue
        values = {a.name: a.i for a in node.attribute}
        window = values.get(_WINDOW, 0)
        way = way_of(window) if window > 0 and _EVICTS not in values else "whole"
        if way == "evicts" or (way == "shifts" and _can_shift(node, values)):
            found.append((node, window, way))
    for node, _, way in found:
        if way == "evicts":
            node.attribute.append(helper.make_attribute(_EVICTS, 1))
    shifted = [(node, window) for node, window, way in found if way == "shifts"]
    if shifted:
        _shift(graph, shifted)
    return {name: window for node, window, _ in found for name in node.input[3:5]}, bool(shifted)


def _can_shift(node: onnx.NodeProto, values: dict[str, int]) -> bool:
    """Its positions must come from the lengths, and nothing else may count from the start."""
    counts_otherwise = any(node.input[_POSITIONS : _POSITIONS + 2])
    has_tables = all(node.input[_COS : _COS + 2]) and len(node.input) >= _COS + 2
    return not counts_otherwise and (has_tables or not values.get("do_rotary", 0))


def _shift(graph: onnx.GraphProto, shifted: Iterable[tuple[onnx.NodeProto, int]]) -> None:
    graph.initializer.append(helper.make_tensor("window@axis", TensorProto.INT64, [1], [0]))
    made: dict[str, onnx.NodeProto] = {}
    at = {id(node): index for index, node in enumerate(graph.node)}
    before: dict[int, list[onnx.NodeProto]] = {}
    windows: set[int] = set()

    def counted(name: str, window: int, index: int, operator: str, inputs: list[str]) -> str:
        output = f"{name}@window_{window}"
        if output not in made:
            made[output] = helper.make_node(operator, [name, *inputs], [output])
            before.setdefault(index, []).append(made[output])
        return output

    for node, window in shifted:
        index = at[id(node)]
        shift, total, first, end = shift_inputs(window)
        windows.add(window)
        node.input[_LAST] = counted(node.input[_LAST], window, index, "Sub", [shift])
        node.input[_TOTAL] = total
        for i in range(_COS, min(_COS + 2, len(node.input))):
            if node.input[i]:
                rows = [first, end, "window@axis"]
                node.input[i] = counted(node.input[i], window, index, "Slice", rows)
    nodes = [n for index, node in enumerate(graph.node) for n in [*before.get(index, []), node]]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    for window in sorted(windows):
        shift, total, first, end = shift_inputs(window)
        graph.input.extend(
            helper.make_tensor_value_info(name, kind, shape)
            for name, kind, shape in (
                (shift, TensorProto.INT32, []),
                (total, TensorProto.INT32, []),
                (first, TensorProto.INT64, [1]),
                (end, TensorProto.INT64, [1]),
            )
        )


def _is_fixed(value: onnx.ValueInfoProto) -> bool:
    dims = value.type.tensor_type.shape.dim
    is_whole = value.type.tensor_type.elem_type in (TensorProto.INT32, TensorProto.INT64)
    return is_whole and len(dims) == 2 and dims[1].dim_value > 1


def _length(cache: onnx.ValueInfoProto) -> int:
    """The number of positions that the graph is made for; 0: any."""
    dims = cache.type.tensor_type.shape.dim
    return dims[2].dim_value if len(dims) == 4 else 0
