"""A graph in the making: nodes, constants, and matrices in the form in which they are stored."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from app.convert.decoder import Linear, Vector
from app.convert.weights import BLOCK, Layout, Place, Stored, store

DATA_FILE = "model.onnx.data"
MICROSOFT = "com.microsoft"
# MatMulNBits quantises the activations to int8 too, as llama.cpp does. Measured on the starter
# model: 0.15 % of perplexity above the exact product, and 33 times its speed.
ACCURACY_LEVEL = 4
INLINE_BYTES = 1024  # smaller constants stay in model.onnx


@dataclass
class Drawing:
    """A graph in the making, and the plan of its data file."""

    in_blocks: bool
    layout: Layout = field(default_factory=Layout)
    stored: list[Stored] = field(default_factory=list)
    constants: list[tuple[Place, NDArray[Any]]] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list)

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

    def matrix(self, linear: Linear) -> Stored:
        stored = store(self.layout, linear.matrix, in_blocks=self.in_blocks)
        self.stored.append(stored)
        return stored

    def linear(self, x: str, linear: Linear, name: str) -> str:
        return self.product(x, self.matrix(linear), name, linear.bias)

    def product(
        self, x: str, stored: Stored, name: str, bias: Vector | None = None,
        output: str | None = None,
    ) -> str:  # fmt: skip
        outputs = [output] if output else None
        biases = [] if bias is None else [self.constant(f"{stored.matrix.name}.bias", bias)]
        if stored.scales is not None:
            blocks = (stored.matrix.n, stored.matrix.k // BLOCK, BLOCK)
            weights = [self.view(stored.values, blocks), self.view(stored.scales)]
            return self.node(
                "MatMulNBits", [x, *weights, *(["", "", *biases] if biases else [])],
                f"{name}/MatMulNBits", outputs, MICROSOFT,
                K=stored.matrix.k, N=stored.matrix.n, bits=8, block_size=BLOCK,
                accuracy_level=ACCURACY_LEVEL,
            )  # fmt: skip
        # Stored (N, K) like the source and the embedding, so that a tied one is stored once.
        y = self.node("FusedMatMul", [x, self.view(stored.values)], f"{name}/MatMul",
                      None if biases else outputs, MICROSOFT, transB=1)  # fmt: skip
        return self.node("Add", [y, *biases], f"{name}/Add", outputs) if biases else y

    def embedding(self, stored: Stored) -> str:
        values, name = self.view(stored.values), "/model/embed_tokens"
        if stored.scales is None:
            return self.node("Gather", [values, "input_ids"], f"{name}/Gather")
        return self.node(
            "GatherBlockQuantized", [values, "input_ids", self.view(stored.scales)],
            f"{name}/GatherBlockQuantized", None, MICROSOFT,
            gather_axis=0, quantize_axis=1, block_size=BLOCK, bits=8,
        )  # fmt: skip

    def view(self, place: Place, shape: tuple[int, ...] | None = None) -> str:
        """The name of an initializer over a place; its bytes may serve several shapes.

        MatMulNBits insists on (N, K/32, 32) and GatherBlockQuantized on as many dimensions as its
        scales have, two. So a tied embedding has two names, and lies in the file once.
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
