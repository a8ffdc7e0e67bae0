"""Draws a Decoder as an ONNX graph of com.microsoft operators; the weights lie beside it.

The graph takes input_ids and attention_mask as exports for onnxruntime-genai do and works out in
itself how far the cache is filled. past and present may be one buffer. The last node is always
what gives logits (B, L, V).
"""

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from app.convert.decoder import Decoder, Layer, Linear, Norm, Rotation, Vector
from app.convert.drawing import MICROSOFT, Drawing
from app.convert.forms import Precision
from app.convert.weights import Stored


def draw(decoder: Decoder, precision: Precision) -> tuple[onnx.ModelProto, Drawing]:
    d = Drawing(precision)
    _lengths(d)
    tables = [_rotation(d, decoder, i) for i in range(len(decoder.rotations))]
    embedding = d.matrix(Linear(decoder.embedding))
    residual = d.scaled(d.embedding(embedding[0]), decoder.embedding_scale, "/model/embed_tokens")
    hidden = _norm(d, residual, decoder.layers[0].attention_norm, "/model/layers.0/input_norm",
                   decoder.norm_epsilon)  # fmt: skip
    for i, layer in enumerate(decoder.layers):
        last = i + 1 == len(decoder.layers)
        following = decoder.final_norm if last else decoder.layers[i + 1].attention_norm
        table = None if layer.rotation is None else tables[layer.rotation]
        hidden, residual = _layer(d, decoder, i, layer, table, hidden, residual, following)
    output = decoder.output and d.matrix(decoder.output)
    _logits(d, decoder, hidden, output or embedding)
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


# ---- positions


def _rotation(d: Drawing, decoder: Decoder, i: int) -> tuple[str, str]:
    """Names of the tables of cosine and sine, (positions, pairs), of one Rotation."""
    rotation, mark = decoder.rotations[i], f"_{i}" if i else ""
    if rotation.far is None:
        return _table(d, decoder.context_length, rotation.frequencies, rotation.size, mark)
    near = _table(d, rotation.near_length, rotation.frequencies, rotation.size, f"{mark}_near")
    far = _table(d, decoder.context_length, rotation.far, rotation.far_size, f"{mark}_far")
    return _chosen(d, rotation, near, far, mark)


def _table(
    d: Drawing, length: int, frequencies: NDArray[np.float64], size: float, mark: str
) -> tuple[str, str]:
    angles = np.arange(length)[:, None] * frequencies
    return (
        d.constant(f"cos_cache{mark}", (size * np.cos(angles)).astype(np.float32)),
        d.constant(f"sin_cache{mark}", (size * np.sin(angles)).astype(np.float32)),
    )


def _chosen(
    d: Drawing, rotation: Rotation, near: tuple[str, str], far: tuple[str, str], mark: str
) -> tuple[str, str]:
    """The tables for short or for long texts, by the length of the whole."""
    at, names = f"/model/rotation{mark}", (f"cos_cache{mark}", f"sin_cache{mark}")
    limit = d.constant(f"near_length{mark}", np.array(rotation.near_length, np.int32))
    is_far = d.node("Greater", ["total_sequence_length", limit], f"{at}/Greater")

    def branch(name: str, tables: tuple[str, str]) -> onnx.GraphProto:
        outputs = [f"{table}_{name}_branch" for table in names]
        nodes = [
            helper.make_node("Identity", [table], [output], name=f"{at}/{name}/{output}")
            for table, output in zip(tables, outputs, strict=True)
        ]
        pairs = len(rotation.frequencies)
        infos = [
            helper.make_tensor_value_info(output, TensorProto.FLOAT, ["positions", pairs])
            for output in outputs
        ]
        return helper.make_graph(nodes, f"{name}{mark}", [], infos)

    d.node("If", [is_far], f"{at}/If", list(names),
           then_branch=branch("far", far), else_branch=branch("near", near))  # fmt: skip
    return names


# ---- norms


def _weight(d: Drawing, values: Vector, name: str, kind: str = "weight") -> str:
    return d.constant(f"{name[1:].replace('/', '.')}.{kind}", values)


def _norm(d: Drawing, x: str, norm: Norm | None, name: str, epsilon: float) -> str:
    if norm is None:
        return x
    weights = [_weight(d, norm.weight, name)]
    if norm.is_centred:
        if norm.bias is not None:
            weights.append(_weight(d, norm.bias, name, "bias"))
        return d.node("LayerNormalization", [x, *weights], name, axis=-1, epsilon=epsilon)
    return d.node("SimplifiedLayerNormalization", [x, *weights], name, axis=-1, epsilon=epsilon,
                  stash_type=1)  # fmt: skip


def _add_norm(
    d: Drawing, x: str, added: str, norm: Norm | None, name: str, epsilon: float
) -> tuple[str, str]:
    """(norm of the sum, the sum)"""
    if norm is None or norm.is_centred:
        total = d.node("Add", [x, added], f"{name}/Add")
        return _norm(d, total, norm, name, epsilon), total
    outputs = [f"{name}/output_0", "", "", f"{name}/output_3"]
    d.node("SkipSimplifiedLayerNormalization", [x, added, _weight(d, norm.weight, name)], name,
           outputs, MICROSOFT, epsilon=epsilon)  # fmt: skip
    return outputs[0], outputs[3]


# ---- layers


def _layer(
    d: Drawing, decoder: Decoder, i: int, layer: Layer, table: tuple[str, str] | None,
    hidden: str, residual: str, following_norm: Norm | None,
) -> tuple[str, str]:  # fmt: skip
    at, epsilon = f"/model/layers.{i}", decoder.norm_epsilon
    last = i + 1 == len(decoder.layers)
    attention = _attention(d, decoder, i, layer, table, hidden)
    projected = d.linear(attention, layer.attention_output, f"{at}/o_proj")
    projected = _norm(d, projected, layer.attention_output_norm, f"{at}/attn_output_norm", epsilon)
    projected = d.scaled(projected, decoder.residual_scale, f"{at}/o_proj/scale")
    hidden, residual = _add_norm(d, residual, projected, layer.feed_forward_norm,
                                 f"{at}/post_attention_norm", epsilon)  # fmt: skip
    down = d.linear(_unit(d, decoder, layer, hidden, at), layer.down, f"{at}/down_proj")
    down = _norm(d, down, layer.feed_forward_output_norm, f"{at}/mlp_output_norm", epsilon)
    down = d.scaled(down, decoder.residual_scale, f"{at}/down_proj/scale")
    name = "/model/final_norm" if last else f"/model/layers.{i + 1}/input_norm"
    return _add_norm(d, residual, down, following_norm, name, epsilon)


def _unit(d: Drawing, decoder: Decoder, layer: Layer, hidden: str, at: str) -> str:
    if not decoder.is_gated:
        return _activated(d, decoder, d.linear(hidden, layer.up, f"{at}/up_proj"), at)
    both = d.linear(hidden, layer.up, f"{at}/gate_up_proj")
    gate, up = f"{at}/gate", f"{at}/up"
    d.node("Split", [both], f"{at}/Split", [gate, up], axis=-1, num_outputs=2)
    return d.node("Mul", [_activated(d, decoder, gate, at), up], f"{at}/Mul")


def _activated(d: Drawing, decoder: Decoder, x: str, at: str) -> str:
    if decoder.activation == "gelu":
        return d.node("FastGelu", [x], f"{at}/FastGelu", None, MICROSOFT)
    return d.node("QuickGelu", [x], f"{at}/QuickGelu", None, MICROSOFT, alpha=1.0)  # SiLU


def _attention(
    d: Drawing, decoder: Decoder, i: int, layer: Layer, table: tuple[str, str] | None, hidden: str
) -> str:
    at = f"/model/layers.{i}"
    packed = d.linear(hidden, layer.query_key_value, f"{at}/qkv_proj")
    options: dict[str, float] = {} if layer.window is None else {"local_window_size": layer.window}
    if decoder.attention_cap:
        options["softcap"] = decoder.attention_cap
    return d.node(
        "GroupQueryAttention",
        [*_query_key_value(d, decoder, layer, packed, at),
         f"past_key_values.{i}.key", f"past_key_values.{i}.value",
         "seqlens_k", "total_sequence_length", *(table or ())],
        f"{at}/attn/GroupQueryAttention",
        [f"{at}/attn/output_0", f"present.{i}.key", f"present.{i}.value"],
        MICROSOFT,
        num_heads=decoder.head_count, kv_num_heads=decoder.key_value_head_count,
        scale=decoder.attention_scale, do_rotary=int(table is not None), rotary_interleaved=0,
        **options,
    )  # fmt: skip


def _query_key_value(
    d: Drawing, decoder: Decoder, layer: Layer, packed: str, at: str
) -> tuple[str, str, str]:
    """One packed input, or three where queries and keys are normalised before they turn."""
    if layer.query_norm is None or layer.key_norm is None:
        return packed, "", ""
    query = decoder.head_count * decoder.head_size
    key = decoder.key_value_head_count * decoder.head_size
    names = [f"{at}/query", f"{at}/key", f"{at}/value"]
    sizes = d.constant("query_key_value_sizes", np.array([query, key, key], np.int64))
    d.node("Split", [packed, sizes], f"{at}/qkv_proj/Split", names, axis=-1)
    return (
        _heads_norm(d, decoder, names[0], layer.query_norm, query, f"{at}/q_norm"),
        _heads_norm(d, decoder, names[1], layer.key_norm, key, f"{at}/k_norm"),
        names[2],
    )


def _heads_norm(
    d: Drawing, decoder: Decoder, x: str, weight: Vector, size: int, name: str
) -> str:  # fmt: skip
    if len(weight) == size:  # over all heads at once
        return _norm(d, x, Norm(weight), name, decoder.norm_epsilon)
    heads = d.constant("in_heads", np.array([0, 0, -1, decoder.head_size], np.int64))
    x = d.node("Reshape", [x, heads], f"{name}/Reshape")
    x = _norm(d, x, Norm(weight), name, decoder.norm_epsilon)
    flat = d.constant(f"in_rows_{size}", np.array([0, 0, size], np.int64))
    return d.node("Reshape", [x, flat], f"{name}/Reshape_1")


# ---- ends


def _logits(d: Drawing, decoder: Decoder, hidden: str, output: list[Stored]) -> None:
    scale, cap = decoder.logits_scale, decoder.logits_cap
    if scale != 1:
        hidden = d.scaled(hidden, scale, "/lm_head/scale")
    bias = None if decoder.output is None else decoder.output.bias
    if not cap:
        d.product(hidden, output, "/lm_head", bias, output="logits")
        return
    limit = d.number(cap)
    x = d.product(hidden, output, "/lm_head", bias)
    x = d.node("Div", [x, limit], "/lm_head/cap/Div")
    x = d.node("Tanh", [x], "/lm_head/cap/Tanh")
    d.node("Mul", [x, limit], "/lm_head/cap/Mul", ["logits"])


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
