"""What an .onnx file says about its weights, without reading them."""

from dataclasses import dataclass
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from app.library.errors import LibraryError

# A graph with its weights inside takes seconds and gigabytes to parse only to be listed.
MAX_PARSED_BYTES = 64_000_000
_PRECISIONS = {
    onnx.TensorProto.FLOAT: "fp32",
    onnx.TensorProto.FLOAT16: "fp16",
    onnx.TensorProto.BFLOAT16: "bf16",
}


@dataclass(frozen=True)
class GraphFacts:
    """`data_bytes`: {file beside the graph: size that it must have at least}."""

    precision: str
    data_bytes: dict[str, int]


def graph_facts(path: Path) -> GraphFacts:
    if path.stat().st_size > MAX_PARSED_BYTES:
        return GraphFacts("", {})
    try:
        model = onnx.load(str(path), load_external_data=False)
    except DecodeError as error:
        raise LibraryError(f"“{path.name}” in “{path.parent.name}” is damaged.") from error
    if not model.graph.node:
        raise LibraryError(f"“{path.name}” in “{path.parent.name}” is damaged: it has no graph.")
    try:
        return GraphFacts(_precision(model.graph), _data_bytes(model.graph))
    except (KeyError, ValueError) as error:
        raise LibraryError(
            f"“{path.name}” in “{path.parent.name}” does not say where its weights are."
        ) from error


def _precision(graph: onnx.GraphProto) -> str:
    """Of the products, which are nearly all of the weights."""
    bits = [
        attribute.i
        for node in graph.node
        if node.op_type == "MatMulNBits"
        for attribute in node.attribute
        if attribute.name == "bits"
    ]
    if bits:
        return f"int{min(bits)}"
    sizes: dict[int, int] = {}
    for tensor in graph.initializer:
        size = 1
        for dimension in tensor.dims:
            size *= dimension
        sizes[tensor.data_type] = sizes.get(tensor.data_type, 0) + size
    return _PRECISIONS.get(max(sizes, key=sizes.__getitem__), "") if sizes else ""


def _data_bytes(graph: onnx.GraphProto) -> dict[str, int]:
    needed: dict[str, int] = {}
    for tensor in graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        facts = {entry.key: entry.value for entry in tensor.external_data}
        end = int(facts.get("offset", 0)) + int(facts.get("length", 0))
        needed[facts["location"]] = max(end, needed.get(facts["location"], 0))
    return needed
