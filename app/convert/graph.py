"""Draws a Decoder as an ONNX graph of com.microsoft operators; the weights lie beside it.

The graph takes input_ids and attention_mask as exports for onnxruntime-genai do and works out in
itself how far the cache is filled. past and present may be one buffer. The last node is always
final norm -> lm_head -> logits (B, L, V).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from app.convert.decoder import Decoder, Layer, Linear, Vector
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
        if values.nbytes < INLINE_BYTES:
            self.initializers.append(numpy_helper.from_array(values, name))
        else:
            place = self.layout.place(name, values.dtype.type, values.shape)
            self.constants.append((place, values))
            self.view(place)
        return name

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


def draw(decoder: Decoder, *, in_blocks: bool) -> tuple[onnx.ModelProto, Drawing]:
    d = Drawing(in_blocks)
    _lengths(d)
    _rotations(d, decoder)
    embedding = d.matrix(Linear(decoder.embedding))
    residual = d.embedding(embedding)
    hidden = _norm(d, residual, decoder.layers[0].attention_norm, "/model/layers.0/input_norm",
                   decoder.norm_epsilon)  # fmt: skip
    for i, layer in enumerate(decoder.layers):
        last = i + 1 == len(decoder.layers)
        following = decoder.final_norm if last else decoder.layers[i + 1].attention_norm
        hidden, residual = _layer(d, decoder, i, layer, hidden, residual, following)
    output = embedding if decoder.output is None else d.matrix(Linear(decoder.output))
    d.product(hidden, output, "/lm_head", output="logits")
    _ports(d, decoder)
    graph = helper.make_graph(d.nodes, "decoder", d.inputs, d.outputs, d.initializers)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="inglenook")
    model.ir_version = 10
    return model, d


def _lengths(d: Drawing) -> None:
    """attention_mask (B, T) -> what GroupQueryAttention wants: last positions (B) and T."""
    one = d.constant("one", np.array([1], np.int64))
    at = "/model/attention_mask"
    total = d.node("ReduceSum", ["attention_mask", one], f"{at}/ReduceSum", keepdims=0)
    last = d.node("Sub", [total, one], f"{at}/Sub")
    d.node("Cast", [last], f"{at}/Cast", ["seqlens_k"], to=TensorProto.INT32)
    shape = d.node("Shape", ["attention_mask"], f"{at}/Shape")
    length = d.node("Gather", [shape, d.constant("one_scalar", np.array(1, np.int64))],
                    f"{at}/Gather", axis=0)  # fmt: skip
    d.node("Cast", [length], f"{at}/Cast_1", ["total_sequence_length"], to=TensorProto.INT32)


def _rotations(d: Drawing, decoder: Decoder) -> None:
    angles = np.arange(decoder.context_length)[:, None] * decoder.rotary_frequencies  # (T, pairs)
    d.constant("cos_cache", np.cos(angles).astype(np.float32))
    d.constant("sin_cache", np.sin(angles).astype(np.float32))


def _norm(d: Drawing, x: str, weight: Vector, name: str, epsilon: float) -> str:
    scale = d.constant(f"{name[1:].replace('/', '.')}.weight", weight)
    return d.node("SimplifiedLayerNormalization", [x, scale], name, axis=-1, epsilon=epsilon,
                  stash_type=1)  # fmt: skip


def _add_norm(
    d: Drawing, x: str, added: str, weight: Vector, name: str, epsilon: float
) -> tuple[str, str]:
    """(norm of the sum, the sum)"""
    scale = d.constant(f"{name[1:].replace('/', '.')}.weight", weight)
    outputs = [f"{name}/output_0", "", "", f"{name}/output_3"]
    d.node("SkipSimplifiedLayerNormalization", [x, added, scale], name, outputs, MICROSOFT,
           epsilon=epsilon)  # fmt: skip
    return outputs[0], outputs[3]


def _layer(
    d: Drawing, decoder: Decoder, i: int, layer: Layer, hidden: str, residual: str,
    following_norm: Vector,
) -> tuple[str, str]:  # fmt: skip
    at = f"/model/layers.{i}"
    last = i + 1 == len(decoder.layers)
    attention = _attention(d, decoder, i, d.linear(hidden, layer.query_key_value, f"{at}/qkv_proj"))
    projected = d.linear(attention, layer.attention_output, f"{at}/o_proj")
    hidden, residual = _add_norm(d, residual, projected, layer.feed_forward_norm,
                                 f"{at}/post_attention_norm", decoder.norm_epsilon)  # fmt: skip
    both = d.linear(hidden, layer.gate_up, f"{at}/gate_up_proj")
    gate, up = f"{at}/gate", f"{at}/up"
    d.node("Split", [both], f"{at}/Split", [gate, up], axis=-1, num_outputs=2)
    gate = d.node("QuickGelu", [gate], f"{at}/QuickGelu", None, MICROSOFT, alpha=1.0)  # SiLU
    gated = d.node("Mul", [gate, up], f"{at}/Mul")
    down = d.linear(gated, layer.down, f"{at}/down_proj")
    name = "/model/final_norm" if last else f"/model/layers.{i + 1}/input_norm"
    return _add_norm(d, residual, down, following_norm, name, decoder.norm_epsilon)


def _attention(d: Drawing, decoder: Decoder, i: int, query_key_value: str) -> str:
    return d.node(
        "GroupQueryAttention",
        [query_key_value, "", "", f"past_key_values.{i}.key", f"past_key_values.{i}.value",
         "seqlens_k", "total_sequence_length", "cos_cache", "sin_cache"],
        f"/model/layers.{i}/attn/GroupQueryAttention",
        [f"/model/layers.{i}/attn/output_0", f"present.{i}.key", f"present.{i}.value"],
        MICROSOFT,
        num_heads=decoder.head_count, kv_num_heads=decoder.key_value_head_count,
        scale=decoder.head_size**-0.5, do_rotary=1, rotary_interleaved=0,
    )  # fmt: skip


def _ports(d: Drawing, decoder: Decoder) -> None:
    def port(name: str, type: int, *shape: str | int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, type, list(shape))

    d.inputs += [
        port("input_ids", TensorProto.INT64, "batch_size", "sequence_length"),
        port("attention_mask", TensorProto.INT64, "batch_size", "total_sequence_length"),
    ]
    d.outputs.append(
        port("logits", TensorProto.FLOAT, "batch_size", "sequence_length", decoder.vocabulary_size)
    )
    heads, size = decoder.key_value_head_count, decoder.head_size
    for i in range(len(decoder.layers)):
        for kind in ("key", "value"):
            past, present = f"past_key_values.{i}.{kind}", f"present.{i}.{kind}"
            d.inputs.append(port(past, TensorProto.FLOAT, "batch_size", heads,
                                 "past_sequence_length", size))  # fmt: skip
            d.outputs.append(port(present, TensorProto.FLOAT, "batch_size", heads,
                                  "total_sequence_length", size))  # fmt: skip
