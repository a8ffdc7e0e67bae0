"""Exports without a genai_config.json come in, in the form that suits, and write the same."""

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from app import engine as og
from app.library.errors import LibraryError
from app.library.models import import_model, inspect, list_models


def export(to: Path, tiny: Path, *names: str, subfolder: str = "onnx", **values: Any) -> Path:
    """As transformers.js keeps a model: texts above, graphs in `onnx`."""
    (to / subfolder).mkdir(parents=True)
    for name in names:
        shutil.copy(tiny / "model.onnx", to / subfolder / name)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tiny / name, to)
    config = {
        "model_type": "llama", "vocab_size": 512, "max_position_embeddings": 256,
        "eos_token_id": [0, 5], "pad_token_id": 1, "bos_token_id": 0, "hidden_size": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, **values,
    }  # fmt: skip
    (to / "config.json").write_text(json.dumps(config))
    return to


def brought_in(source: Path, models: Path) -> Path:
    steps = import_model(source, models)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value


def text_of(folder: Path) -> list[int]:
    with og.Model(folder) as model:
        params = og.GeneratorParams(model)
        params.set_search_options(max_length=30, do_sample=False)
        with og.Generator(model, params) as generator:
            generator.append_tokens([40, 41, 42])
            while not generator.is_done():
                generator.generate_next_token()
            return generator.get_sequence(0).tolist()


@pytest.fixture
def tiny(data_folder: Path) -> Path:
    return data_folder / "tiny-llama"


@pytest.mark.parametrize("subfolder", ["", "onnx"])
def test_an_export_becomes_a_model_folder(tmp_path: Path, tiny: Path, subfolder: str) -> None:
    source = export(tmp_path / "Tiny Export", tiny, "model.onnx", subfolder=subfolder)
    made = brought_in(source, tmp_path / "models")
    assert made.name == "Tiny Export"
    assert inspect(made).context_length == 256
    assert [model.name for model in list_models(tmp_path / "models")] == ["Tiny Export"]
    assert text_of(made) == text_of(tiny)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (("model.onnx", "model_q4.onnx", "model_fp16.onnx"), "model_q4.onnx"),
        (("model.onnx", "model_quantized.onnx", "model_q4f16.onnx"), "model_quantized.onnx"),
        (("model_fp16.onnx", "model.onnx"), "model.onnx"),
        (("decoder_model_merged.onnx", "decoder_model_merged_int8.onnx"),
         "decoder_model_merged_int8.onnx"),
        (("other.onnx",), "other.onnx"),
    ],
)  # fmt: skip
def test_of_several_forms_one_is_taken(
    tmp_path: Path, tiny: Path, names: tuple[str, ...], chosen: str
) -> None:
    made = brought_in(export(tmp_path / "m", tiny, *names), tmp_path / "models")
    assert [file.name for file in made.glob("*.onnx")] == [chosen]


def test_a_graph_that_is_dropped_is_the_one(tmp_path: Path, tiny: Path) -> None:
    source = export(tmp_path / "m", tiny, "model.onnx", "model_q4.onnx")
    made = brought_in(source / "onnx" / "model.onnx", tmp_path / "models")
    assert made.name == "m"
    assert [file.name for file in made.glob("*.onnx")] == ["model.onnx"]


def test_weights_beside_the_graph_come_along(tmp_path: Path, tiny: Path) -> None:
    source = export(tmp_path / "m", tiny)
    model = onnx.load(tiny / "model.onnx")
    graph = source / "onnx" / "model_q4.onnx"
    onnx.save(model, graph, save_as_external_data=True, location="model_q4.onnx_data")
    made = brought_in(source, tmp_path / "models")
    assert text_of(made) == text_of(tiny)
    (source / "onnx" / "model_q4.onnx_data").unlink()
    with pytest.raises(LibraryError, match=r"model_q4\.onnx_data"):
        brought_in(source, tmp_path / "models")


def test_a_graph_with_a_branch_for_the_first_run(tmp_path: Path, tiny: Path) -> None:
    """As Optimum merges its two decoders: an input says which is meant."""
    source = export(tmp_path / "m", tiny)
    model = onnx.load(tiny / "model.onnx")
    branch = helper.make_tensor_value_info("use_cache_branch", TensorProto.BOOL, [1])
    model.graph.input.append(branch)
    one = helper.make_tensor("branch_one", TensorProto.FLOAT, [], [1.0])
    half = helper.make_tensor("branch_first", TensorProto.FLOAT, [], [1.0])
    model.graph.initializer.extend([one, half])
    output = model.graph.node[-1].output[0]
    model.graph.node[-1].output[0] = "logits_before"
    model.graph.node.extend(
        [
            helper.make_node("Where", ["use_cache_branch", "branch_one", "branch_first"], ["by"]),
            helper.make_node("Mul", ["logits_before", "by"], [output]),
        ]
    )
    onnx.save(model, source / "onnx" / "decoder_model_merged.onnx")
    assert text_of(brought_in(source, tmp_path / "models")) == text_of(tiny)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda to: (to / "tokenizer.json").unlink(), "tokenizer.json"),
        (lambda to: (to / "config.json").write_text("{"), "config.json"),
        (lambda to: (to / "config.json").write_text("{}"), "eos_token_id is missing"),
        (lambda to: (to / "onnx" / "model.onnx").write_bytes(b"x"), "damaged"),
        (lambda to: (to / "onnx" / "model.onnx").rename(to / "onnx" / "a.onnx")
         and shutil.copy(to / "onnx" / "a.onnx", to / "onnx" / "b.onnx"), "drop the one"),
        (lambda to: (to / "onnx" / "model.onnx").rename(to / "onnx" / "decoder_model_merged.onnx")
         and shutil.copy(to / "onnx" / "decoder_model_merged.onnx",
                         to / "onnx" / "vision_encoder.onnx"), "several graphs"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_says_why_and_leaves_nothing(
    tmp_path: Path, tiny: Path, change: Any, words: str
) -> None:
    source = export(tmp_path / "m", tiny, "model.onnx")
    change(source)
    models = tmp_path / "models"
    models.mkdir()
    with pytest.raises(LibraryError, match=words):
        brought_in(source, models)
    assert list(models.iterdir()) == []


def test_200_spoilt_configs_come_in_or_are_a_sentence(tmp_path: Path, tiny: Path) -> None:
    seed = int(np.random.default_rng().integers(2**31))
    print("seed", seed)
    draw = np.random.default_rng(seed)
    source = export(tmp_path / "m", tiny, "model.onnx")
    plain = json.loads((source / "config.json").read_text())
    junk = [None, True, -1, 10**400, 1.5, "x", [], {}, [[]], "\ud800", 2**31, 0]
    models = tmp_path / "models"
    came_in = 0
    for _ in range(200):
        config = dict(plain)
        for _ in range(int(draw.integers(1, 3))):
            config[str(draw.choice(sorted(plain)))] = junk[int(draw.integers(len(junk)))]
        (source / "config.json").write_text(json.dumps(config))
        try:
            made = brought_in(source, models)
        except LibraryError:
            continue
        came_in += 1
        with suppress(og.EngineError):  # a sentence when it is opened
            og.Model(made).close()
        shutil.rmtree(made)
    assert came_in > 10
