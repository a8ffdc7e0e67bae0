"""A graph in the making: nodes, constants, and matrices in the form in which they are stored."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from app.convert.decoder import Linear, Vector
from app.convert.forms import FLOAT32, Precision
from app.convert.weights import Layout, Place, Stored, store

DATA_FILE = "model.onnx.data"
MICROSOFT = "com.microsoft"
# MatMulNBits quantises the activations to int8 too, as llama.cpp does. Measured on the starter
# model: 0.15 % of perplexity above the exact product, and 33 times its speed.
ACCURACY_LEVEL = 4
INLINE_BYTES = 1024  # smaller constants stay in model.onnx


@dataclass
class Drawing:
    """A graph in the making, and the plan of its data file."""

    precision: Precision
    layout: Layout = field(default_factory=Layout)
    stored: list[Stored] = field(default_factory=list)
    constants: list[tuple[Place, NDArray[Any]]] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    _sums: dict[tuple[str, int], str] = field(default_factory=dict)

    def node(
        self, kind: str, inputs: list[str], name: str, outputs: list[str] | None = None,
        domain: str = "", **attributes: Any,
    ) -> str:  # fmt: skip
        outputs = outputs or [f"{name}/output_0"]
        self.nodes.append(
            helper.make_node(kind, inputs, outputs, name=name, domain=domain, **attributes)
        )
        return outputs[0]

    def constant(self, name: str, values: NDArray[Any]) -> str:
        """Under a name that is there already the first values stay."""
        if any(name == known.name for known in self.initializers):
            return name
        if values.nbytes < INLINE_BYTES:
            self.initializers.append(numpy_helper.from_array(values, name))
        else:
            place = self.layout.place(name, values.dtype.type, values.shape)
            self.constants.append((place, values))
            self.view(place)
        return name

    def number(self, value: float) -> str:
        return self.constant(f"number_{value!r}", np.array(value, np.float32))

    def scaled(self, x: str, scale: float, name: str) -> str:
        return x if scale == 1 else self.node("Mul", [x, self.number(scale)], f"{name}/Mul")

    def matrix(self, linear: Linear) -> list[Stored]:
        pieces = store(self.layout, linear.matrix, self.precision)
        self.stored += pieces
        return pieces

    def linear(self, x: str, linear: Linear, name: str) -> str:
        return self.product(x, self.matrix(linear), name, linear.bias)

    def product(
        self, x: str, pieces: list[Stored], name: str, bias: Vector | None = None,
        output: str | None = None,
    ) -> str:  # fmt: skip
        """x W^T + bias, under the name `output` if there is one."""
        outputs = [output] if output else None
        if len(pieces) == 1:
            return self._piece(x, pieces[0], name, bias, outputs)
        starts = np.cumsum([0, *(piece.matrix.n for piece in pieces)])
        parts = []
        for i, piece in enumerate(pieces):
            share = None if bias is None else bias[starts[i] : starts[i + 1]]
            parts.append(self._piece(x, piece, f"{name}.{i}", share, None))
        return self.node("Concat", parts, f"{name}/Concat", outputs, axis=-1)

    def _piece(
        self, x: str, stored: Stored, name: str, bias: Vector | None, outputs: list[str] | None
    ) -> str:
        biases = [] if bias is None else [self.constant(f"{stored.matrix.name}.bias", bias)]
        if stored.scales is None:
            # (N, K) like the source and the embedding, so that a tied one is stored once.
            y = self.node("FusedMatMul", [x, self.view(stored.values)], f"{name}/MatMul",
                          None if biases else outputs, MICROSOFT, transB=1)  # fmt: skip
            return self.node("Add", [y, *biases], f"{name}/Add", outputs) if biases else y
        n, k, block = stored.matrix.n, stored.matrix.k, stored.form.block
        size = block * stored.form.bits // 8
        weights = [self.view(stored.values, (n, k // block, size)), self.view(stored.scales)]
        y = self.node(
            "MatMulNBits", [x, *weights, *(["", "", *biases] if biases else [])],
            f"{name}/MatMulNBits", None if stored.corrections else outputs, MICROSOFT,
            K=k, N=n, bits=stored.form.bits, block_size=block, accuracy_level=ACCURACY_LEVEL,
        )  # fmt: skip
        if stored.corrections is None:
            return y
        sums = self._block_sums(x, k, block)
        correction = self.node("FusedMatMul", [sums, self.view(stored.corrections)],
                               f"{name}/correction", None, MICROSOFT, transB=1)  # fmt: skip
        return self.node("Add", [y, correction], f"{name}/Add", outputs)

    def _block_sums(self, x: str, k: int, block: int) -> str:
        """x (.., K) summed over the blocks of a row: (.., K / block); once for all that use x."""
        if (x, block) not in self._sums:
            at = f"{x.removesuffix('/output_0')}/sums_{block}"
            shape = np.array([0, 0, k // block, block], np.int64)
            shape_name = self.constant(f"in_blocks_{k}_{block}", shape)
            axis = self.constant("in_block_axis", np.array([3], np.int64))
            blocks = self.node("Reshape", [x, shape_name], f"{at}/Reshape")
            self._sums[x, block] = self.node(
                "ReduceSum", [blocks, axis], f"{at}/ReduceSum", keepdims=0
            )
        return self._sums[x, block]

    def embedding(self, stored: Stored) -> str:
        values, name = self.view(stored.values), "/model/embed_tokens"
        if stored.form == FLOAT32 or stored.scales is None:
            return self.node("Gather", [values, "input_ids"], f"{name}/Gather")
        k, block = stored.matrix.k, stored.form.block
        rows = self.node(
            "GatherBlockQuantized", [values, "input_ids", self.view(stored.scales)],
            f"{name}/GatherBlockQuantized", None, MICROSOFT,
            gather_axis=0, quantize_axis=1, block_size=block, bits=stored.form.bits,
        )  # fmt: skip
        if stored.corrections is None:
            return rows
        shape = np.array([0, 0, k // block, block], np.int64)
        blocks = self.node("Reshape", [rows, self.constant(f"in_blocks_{k}_{block}", shape)],
                           f"{name}/Reshape")  # fmt: skip
        added = self.node("Gather", [self.view(stored.corrections), "input_ids"], f"{name}/Gather")
        last = self.constant("last_axis", np.array([-1], np.int64))
        added = self.node("Unsqueeze", [added, last], f"{name}/Unsqueeze")
        blocks = self.node("Add", [blocks, added], f"{name}/Add")
        flat = self.constant(f"in_rows_{k}", np.array([0, 0, k], np.int64))
        return self.node("Reshape", [blocks, flat], f"{name}/Reshape_1")

    def view(self, place: Place, shape: tuple[int, ...] | None = None) -> str:
        """The name of an initializer over a place; its bytes may serve several shapes.

        MatMulNBits insists on (N, blocks, bytes of a block) and GatherBlockQuantized on as many
        dimensions as its scales have, two. So a tied embedding has two names, and lies in the file
        once.
        """
        tensor = external(place, shape or place.shape)
        if all(tensor.name != known.name for known in self.initializers):
            self.initializers.append(tensor)
        return str(tensor.name)


def external(place: Place, shape: tuple[int, ...]) -> onnx.TensorProto:
    tensor = onnx.TensorProto(
        name=place.name if shape == place.shape else f"{place.name}.blocks",
        dims=shape,
        data_type=helper.np_dtype_to_tensor_dtype(place.dtype),
        data_location=TensorProto.EXTERNAL,
    )
    facts = {"location": DATA_FILE, "offset": place.offset, "length": place.size_bytes}
    for key, value in facts.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor
