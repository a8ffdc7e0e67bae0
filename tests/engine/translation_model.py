"""Writes a small model of the marian kind: an encoder, and a recurrent decoder that looks at it."""

import json
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

VOCABULARY, WIDTH, LAYERS = 64, 16, 3
END, PAD, START = 0, 62, 63

_ENCODER = """
<ir_version: 8, opset_import: ["" : 17]>
encoder (int64[B, S] input_ids, int32[B, S] attention_mask) => (float[B, S, 16] encoder_outputs) {
    embedded = Gather(table, input_ids)
    mixed = MatMul(embedded, mixer)
    encoder_outputs = Tanh(mixed)
}
"""

_DECODER = """
<ir_version: 8, opset_import: ["" : 17]>
decoder (int64[B] input_ids, float[B, S, 16] encoder_hidden_states,
         int32[B, S] encoder_attention_mask, float[3, B, 16] rnn_states_prev,
         int64[1] past_key_values_length)
     => (float[B, 64] logits, float[3, B, 16] rnn_states) {
    embedded = Gather(table, input_ids)
    step = Cast<to = 1>(past_key_values_length)
    turned = Mul(step, tenth)
    placed = Add(embedded, turned)
    mask = Cast<to = 1>(encoder_attention_mask)
    masks = Unsqueeze(mask, last)
    seen = Mul(encoder_hidden_states, masks)
    total = ReduceSum<keepdims = 0>(seen, middle)
    count = ReduceSum<keepdims = 1>(mask, middle)
    context = Div(total, count)
    joined = Add(placed, context)
    row = Unsqueeze(joined, first)
    offered = MatMul(row, layers)
    gate = Sigmoid(offered)
    kept = Mul(gate, rnn_states_prev)
    bent = Tanh(offered)
    rnn_states = Add(kept, bent)
    summed = ReduceSum<keepdims = 0>(rnn_states, first)
    logits = MatMul(summed, head)
}
"""


def write(folder: Path) -> Path:
    random = np.random.default_rng(8)

    def weights(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    constants = {
        "table": weights(VOCABULARY, WIDTH), "mixer": weights(WIDTH, WIDTH),
        "layers": weights(LAYERS, WIDTH, WIDTH), "head": weights(WIDTH, VOCABULARY),
        "tenth": np.array([0.1], np.float32), "first": np.array([0]),
        "middle": np.array([1]), "last": np.array([2]),
    }  # fmt: skip
    for name, text in (("encoder", _ENCODER), ("decoder", _DECODER)):
        model = onnx.parser.parse_model(text)
        used = {name for node in model.graph.node for name in node.input}
        for constant, value in constants.items():
            if constant in used:
                model.graph.initializer.append(numpy_helper.from_array(value, constant))
        onnx.save(model, folder / f"{name}.onnx")
    sizes = {"head_size": 4, "hidden_size": WIDTH}
    names = ("input_ids", "encoder_hidden_states", "encoder_attention_mask", "rnn_states_prev")
    config = {
        "model": {
            "type": "marian-ssru", "bos_token_id": START, "eos_token_id": END,
            "pad_token_id": PAD, "vocab_size": VOCABULARY, "context_length": 64,
            "encoder": {
                "filename": "encoder.onnx", **sizes,
                "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask"},
                "outputs": {"encoder_outputs": "encoder_outputs"},
            },
            "decoder": {
                "filename": "decoder.onnx", **sizes, "session_options": {},
                "inputs": {n: n for n in (*names, "past_key_values_length")},
                "outputs": {"logits": "logits", "rnn_states": "rnn_states"},
            },
        },
        "search": {"max_length": 64, "past_present_share_buffer": True, "top_k": 1},
    }  # fmt: skip
    (folder / "genai_config.json").write_text(json.dumps(config))
    return folder
