"""Everything that can be wrong gives one sentence: EngineError, ValueError or TypeError."""

import json
import os
import shutil
import sys

import numpy as np
import onnx
import pytest

from app import engine as og

SENTENCE = (og.EngineError, ValueError, TypeError)


@pytest.fixture
def folder(tmp_path, data_folder):
    copy = tmp_path / "Mod\u00e8le \u6a21\u578b \U0001f525"
    shutil.copytree(data_folder / "tiny-llama-gqa", copy)
    return copy


def change(folder, **values):
    path = folder / "genai_config.json"
    document = json.loads(path.read_text())
    for name, value in values.items():
        section = document
        *parents, last = name.split("__")
        for parent in parents:
            section = section[parent]
        section[last] = value
    path.write_text(json.dumps(document))


# ---------------------------------------------------------------- model folders


def test_the_onnx_file_the_config_and_unicode_paths_are_accepted(folder):
    for path in (folder, str(folder), folder / "model.onnx", folder / "genai_config.json"):
        with og.Model(path) as model:
            assert model.type == "llama"
            assert model.device_type == "CPU"
            assert og.Tokenizer(model).decode(og.Tokenizer(model).encode("Hi")) == "Hi"


def test_another_onnx_file_of_the_folder_is_the_one_that_is_opened(folder):
    (folder / "model.onnx").rename(folder / "model_q4.onnx")
    og.Model(folder / "model_q4.onnx").close()
    with pytest.raises(og.ModelError, match=r"model\.onnx is missing"):
        og.Model(folder)


@pytest.mark.parametrize("name", ["nowhere", "genai_config.txt"])
def test_what_is_no_model_says_so(folder, name):
    (folder / "genai_config.txt").write_text("x")
    with pytest.raises(og.ModelError, match=name):
        og.Model(folder / name)


@pytest.mark.parametrize("name", ["x" * 5000, "x" * 5000 + ".onnx", "a\0b"])
def test_a_name_that_no_disk_takes_is_no_model(name):
    with pytest.raises(og.ModelError, match="no model"):
        og.Model(name)


@pytest.mark.parametrize("source", [None, 3, ["x"], b"x"])
def test_a_model_is_opened_by_a_path(source):
    with pytest.raises(TypeError):
        og.Model(source)


def test_a_folder_without_a_config_says_what_is_missing(folder):
    (folder / "genai_config.json").unlink()
    with pytest.raises(og.ModelError, match=r"genai_config\.json is missing"):
        og.Model(folder)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.95])
@pytest.mark.parametrize("name", ["model.onnx", "genai_config.json"])
def test_cut_files_name_themselves(folder, name, share):
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: int(share * len(data))])
    with pytest.raises(og.ModelError, match=name.replace(".", r"\.")):
        og.Model(folder)


@pytest.mark.parametrize("content", [b"PK\x03\x04 a zip", b"GGUF\x03\0\0\0", b"\xff" * 5000, b"{}"])
@pytest.mark.parametrize("name", ["model.onnx", "genai_config.json", "tokenizer.json"])
def test_foreign_files_name_themselves(folder, name, content):
    (folder / name).write_bytes(content)
    with pytest.raises(og.ModelError) as raised:
        og.Tokenizer(og.Model(folder))
    assert name in str(raised.value) or "model" in str(raised.value)
    assert "\n" not in str(raised.value).strip()


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000])
@pytest.mark.parametrize("name", ["genai_config", "generation_config", "tokenizer_config"])
def test_json_as_deep_as_a_well_is_not_read(folder, name, content):
    (folder / f"{name}.json").write_text(content)
    with pytest.raises(og.ModelError, match=rf"{name}\.json is not valid JSON"):
        og.Tokenizer(og.Model(folder))


def test_what_the_runtime_prints_is_logged_and_not_shown(folder, capsys, caplog):
    caplog.set_level("INFO")
    affinities = {"session.intra_op_thread_affinities": "none"}
    change(folder, model__decoder__session_options=affinities | {"intra_op_num_threads": 2})
    with pytest.raises(og.ModelError, match="cannot be loaded"):
        og.Model(folder)
    assert capsys.readouterr().out == ""
    assert "consist of only digits" in caplog.text


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_folder_whose_name_is_no_text(folder):
    renamed = folder.rename(folder.parent / os.fsdecode(b"model\xff"))
    with pytest.raises(og.ModelError, match="rename the folder"):
        og.Model(renamed)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"location": "weights", "offset": "many"}, "does not say where"),
        ({"location": "weights", "length": "9" * 5000}, "does not say where"),
        ({"location": "w" * 5000}, "is missing"),
        ({"location": "../../weights"}, "is missing"),
    ],
)
def test_weights_that_are_said_to_lie_nowhere(folder, entries, words):
    graph = onnx.load(str(folder / "model.onnx"))
    tensor = graph.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    (folder / "model.onnx").write_bytes(graph.SerializeToString())
    with pytest.raises(og.ModelError, match=words):
        og.Model(folder)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_missing_files_are_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(og.ModelError, match=name.replace(".", r"\.")):
        og.Tokenizer(og.Model(folder))


def test_missing_and_cut_weights_are_named(variant, tmp_path):
    for change_file in ("missing", "cut"):
        folder = tmp_path / change_file
        shutil.copytree(variant("external"), folder)
        weights = folder / "model.onnx.data"
        data = weights.read_bytes()
        weights.unlink()
        if change_file == "cut":
            weights.write_bytes(data[:-100])
        with pytest.raises(og.ModelError, match=r"model\.onnx\.data"):
            og.Model(folder)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"model__context_length": 0}, "context_length"),
        ({"model__context_length": "many"}, "context_length"),
        ({"model__context_length": True}, "context_length"),
        ({"model__vocab_size": -3}, "vocab_size"),
        ({"model__vocab_size": 100000}, "vocab_size"),
        ({"model__eos_token_id": "end"}, "eos_token_id"),
        ({"model__eos_token_id": [0, 512]}, "512"),
        ({"model__type": 7}, "type"),
        ({"model__decoder": []}, "decoder"),
        ({"model": 5}, "model"),
        ({"model__decoder__filename": "../model.onnx"}, "filename"),
        ({"model__decoder__filename": "/etc/passwd"}, "filename"),
        ({"model__decoder__filename": ""}, "filename"),
        ({"model__decoder__inputs": {"input_ids": "ids"}}, "ids"),
        ({"model__decoder__outputs": {"logits": "scores"}}, "scores"),
        ({"model__decoder__session_options": {"intra_op_num_threads": "two"}}, "intra_op"),
        ({"model__decoder__session_options": {"provider_options": 3}}, "provider_options"),
        ({"search__max_length": "long"}, "max_length"),
        ({"search__do_sample": 1}, "do_sample"),
        ({"search__top_k": 1.5}, "top_k"),
        ({"search": 1}, "search"),
        ({"search__temperature": 10**400}, "temperature"),
        ({"model__tokenizer_dir": "a\0b"}, "tokenizer_dir"),
        ({"model__type": "\ud800"}, "genai_config"),
        ({"model__decoder__filename": "x" * 5000}, "missing"),
        ({"model__decoder__session_options": {"provider_options": [{"cuda": "x"}]}}, "cuda"),
        ({"model__decoder__session_options": {"intra_op_num_threads": 2**31}}, "intra_op"),
        ({"model__decoder__session_options": {"graph_optimization_level": []}}, "optimization"),
        ({"model__decoder__session_options": {"log_severity_level": 99}}, "cannot be loaded"),
        ({"model__decoder__session_options": {"x" * 2000: "1"}}, "x"),
        ({"model__decoder__sliding_window": {"window_size": 0}}, "window_size"),
        ({"model__decoder__sliding_window": {"window_size": 8, "layers": [-1]}}, "layers"),
        ({"model__decoder__sliding_window": {"window_size": 8, "alignment": "up"}}, "alignment"),
        ({"model__decoder__sliding_window": {"window_size": 8, "slide_inputs": 1}}, "slide_inputs"),
    ],
)
def test_wrong_values_in_the_config_name_the_field(folder, values, field):
    change(folder, **values)
    with pytest.raises(og.EngineError, match=field):
        og.Model(folder)


def test_unknown_keys_are_skipped_and_logged(folder, caplog):
    change(folder, model__new_thing=1, search__blank_penalty=2, model__decoder__patch=3)
    change(folder, model__decoder__sliding_window={"window_size": 8, "moves": 1})
    og.Model(folder).close()
    for name in ("new_thing", "blank_penalty", "patch", "moves"):
        assert name in caplog.text


def test_a_device_that_does_not_work_here_is_not_claimed(folder):
    change(
        folder,
        model__decoder__session_options={"provider_options": [{"cuda": {}}, {"dml": {}}]},
    )
    with og.Model(folder) as model:
        assert model.device_type == ("CUDA" if og.is_cuda_available() else "CPU")
    for name in ("is_dml_available", "is_qnn_available", "is_openvino_available"):
        assert getattr(og, name)() is False


def test_config_can_be_changed_before_opening(folder):
    config = og.Config(folder)
    config.overlay('{"model": {"eos_token_id": [7]}, "search": {"max_length": 9}}')
    config.append_provider("CPUExecutionProvider")
    config.set_provider_option("cpu", "a", "b")
    config.add_model_data("model.onnx", (folder / "model.onnx").read_bytes())
    (folder / "model.onnx").unlink()
    model = og.Model(config)
    assert model.config.model.eos_token_ids == (7,)
    assert og.GeneratorParams(model).get_search_options()["max_length"] == 9
    config.remove_model_data("model.onnx")
    for call in (
        lambda: config.remove_model_data("model.onnx"),
        lambda: config.add_model_data("model.onnx", b""),
        lambda: config.add_model_data("model.onnx", "text"),
        lambda: config.overlay("{"),
        lambda: config.overlay("[]"),
        lambda: config.overlay(None),
        lambda: config.append_provider("abacus"),
    ):
        with pytest.raises(SENTENCE):
            call()


# ---------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"max_length": 0.5}, "max_length"),
        ({"max_length": 257}, "257"),
        ({"max_length": -1}, "-1"),
        ({"max_length": 2**40}, "max_length"),
        ({"max_length": "9"}, "max_length"),
        ({"max_length": None}, "max_length"),
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 33}, "33"),
        ({"num_beams": 0}, "num_beams"),
        ({"num_beams": 2, "do_sample": True, "top_k": 5}, "num_beams"),
        ({"num_beams": 2, "length_penalty": float("nan")}, "length_penalty"),
        ({"num_beams": 2, "num_return_sequences": 3}, "num_return_sequences"),
        ({"do_sample": True, "min_p": 1.5}, "min_p"),
        ({"num_return_sequences": 2}, "num_return_sequences"),
        ({"do_sample": 1}, "do_sample"),
        ({"top_k": True}, "top_k"),
        ({"do_sample": True, "top_k": -1}, "top_k"),
        ({"do_sample": True, "top_k": 513}, "513"),
        ({"do_sample": True, "top_p": 1.01}, "1.01"),
        ({"do_sample": True, "top_p": -0.1}, "top_p"),
        ({"do_sample": True, "top_p": float("nan")}, "top_p"),
        ({"do_sample": True, "temperature": -1.0}, "temperature"),
        ({"do_sample": True, "temperature": float("nan")}, "temperature"),
        ({"do_sample": True, "temperature": float("inf")}, "temperature"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"repetition_penalty": float("nan")}, "repetition_penalty"),
        ({"repetition_penalty": 1e-300}, "repetition_penalty"),
        ({"repetition_penalty": 1e300}, "repetition_penalty"),
        ({"colour": 1}, "colour"),
    ],
)
def test_wrong_options_name_themselves_and_the_value(open_model, options, shown):
    def generator_with(params):
        params.set_search_options(**options)
        return og.Generator(open_model("tiny-llama"), params)

    with pytest.raises(SENTENCE, match=shown.replace(".", r"\.")):
        generator_with(og.GeneratorParams(open_model("tiny-llama")))


def test_only_some_options_change_while_generating(open_model, generator_for):
    generator = generator_for(open_model("tiny-llama"))
    for options in ({"batch_size": 2}, {"num_beams": 2}, {"temperature": "hot"}, {"x": 1}):
        with pytest.raises(SENTENCE):
            generator.set_search_options(**options)


# ---------------------------------------------------------------- the generator


@pytest.mark.parametrize(
    "tokens",
    [
        [], [[]], np.zeros((1, 0), np.int32), [-1], [512], [2**40], [0.5], [1.0], "text", None,
        [[1, 2], [3, 4]], np.zeros((1, 1, 2), np.int32), [True], [float("nan")], object(),
        np.array(["a"]), {1: 2}, [40] * 257,
    ],
    ids=repr,
)  # fmt: skip
def test_wrong_tokens_are_refused_and_change_nothing(open_model, generator_for, tokens):
    generator = generator_for(open_model("tiny-llama"))
    generator.append_tokens([40, 41])
    for call in (generator.append_tokens, lambda t: list(generator.prefill(t))):
        with pytest.raises(SENTENCE):
            call(tokens)
    assert generator.get_sequence(0).tolist() == [40, 41]
    generator.generate_next_token()


def test_too_long_a_text_says_by_how_much(open_model, generator_for):
    generator = generator_for(open_model("tiny-llama"), max_length=10)
    generator.append_tokens([40, 41])
    with pytest.raises(og.ContextFullError) as raised:
        generator.append_tokens([42] * 9)
    assert (raised.value.needed, raised.value.limit) == (11, 10)


@pytest.mark.parametrize("rows", [[40, 41, 42], [[40, 41]], [[40], [41], [42]]])
def test_rows_must_match_the_batch(open_model, generator_for, rows):
    generator = generator_for(open_model("tiny-llama"), batch_size=2)
    with pytest.raises(SENTENCE):
        generator.append_tokens(rows)


def test_a_batch_is_appended_once(open_model, generator_for):
    generator = generator_for(open_model("tiny-llama"), batch_size=2)
    generator.append_tokens([[40, 41], [42, 43]])
    with pytest.raises(og.EngineError, match="batch_size"):
        generator.append_tokens([[40, 41], [42, 43]])


@pytest.mark.parametrize("length", [-1, 3, 1.5, "1", None, True, 2**70])
def test_wrong_rewinds(open_model, generator_for, length):
    generator = generator_for(open_model("tiny-llama"))
    generator.append_tokens([40, 41])
    with pytest.raises(SENTENCE):
        generator.rewind_to(length)
    assert generator.token_count() == 2


@pytest.mark.parametrize("index", [-1, 1, 0.0, "0", None])
def test_wrong_sequence_numbers(open_model, generator_for, index):
    generator = generator_for(open_model("tiny-llama"))
    generator.append_tokens([40, 41])
    with pytest.raises(SENTENCE):
        generator.get_sequence(index)


@pytest.mark.parametrize(
    "logits",
    [[], [1, 2], np.zeros((2, 512)), np.full(512, np.nan), "x", None, np.zeros(512, complex)],
    ids=repr,
)
def test_wrong_logits(open_model, generator_for, logits):
    generator = generator_for(open_model("tiny-llama"))
    generator.append_tokens([40, 41])
    with pytest.raises(SENTENCE):
        generator.set_logits(logits)


def test_logits_are_set_only_where_they_are_current(open_model, generator_for):
    generator = generator_for(open_model("tiny-llama"))
    generator.append_tokens([40, 41])
    generator.generate_next_token()
    with pytest.raises(og.EngineError, match="not computed"):
        generator.set_logits(np.zeros(512))
    generator.get_logits()
    generator.set_logits(np.zeros(512))


def test_logits_of_any_shape_and_order_are_taken(open_model, generator_for):
    generator = generator_for(open_model("tiny-llama"))
    generator.append_tokens([40, 41])
    for shape in ((512,), (1, 512), (1, 1, 512), (2, 256)):
        generator.set_logits(np.asfortranarray(np.arange(512.0).reshape(shape)))
        assert generator.get_logits()[0].tolist() == list(range(512))


def test_there_is_nothing_before_the_first_token(open_model, generator_for):
    generator = generator_for(open_model("tiny-llama"))
    assert generator.token_count() == 0
    assert not generator.is_done()
    assert generator.get_next_tokens().tolist() == [0]
    assert generator.get_sequence(0).tolist() == []
    for call in (
        generator.generate_next_token,
        generator.get_logits,
        lambda: generator.get_input("input_ids"),
        lambda: generator.get_output("logits"),
    ):
        with pytest.raises(og.EngineError):
            call()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nothing", np.zeros(1)),
        ("past_key_values.0.key", np.zeros((1, 2, 0, 16), np.float32)),
        ("attention_mask", np.ones((1, 2), np.float32)),
        ("attention_mask", np.ones(2, np.int64)),
        ("attention_mask", np.full((1, 2), 2**63, np.uint64)),
        ("attention_mask", np.array([["a", "b"]])),
        ("attention_mask", np.array([[0, 2]])),
        ("attention_mask", np.array([[0, -1]])),
        ("position_ids", np.array([[0, 256]])),
        ("position_ids", np.array([[-1, 0]])),
        ("input_ids", np.array([[512, 0]])),
        ("lora_A", np.zeros((32, 4), np.int64)),
        ("attention_mask", [[1, 1]]),
        ("lora_A", np.zeros((3, 4), np.float32)),
        ("logits_positions", np.zeros(1, np.int64)),
        (3, np.zeros(1)),
    ],
)
def test_wrong_model_inputs(open_model, generator_for, name, value):
    with pytest.raises(SENTENCE):
        generator_for(open_model("tiny-llama")).set_model_input(name, value)


@pytest.mark.parametrize("name", ["attention_mask", "input_ids", "position_ids"])
@pytest.mark.parametrize("shape", [(1, 9), (1, 1), (2, 2), (1, 0)])
def test_an_input_of_a_wrong_length_fails_once_and_is_forgotten(
    open_model, generator_for, name, shape
):
    generator = generator_for(open_model("tiny-llama"))
    generator.set_model_input(name, np.ones(shape, np.int64))
    with pytest.raises(og.EngineError, match=rf"{name} takes the shape \[1, 2\]"):
        generator.append_tokens([40, 41])
    assert generator.token_count() == 0
    generator.append_tokens([40, 41])


def test_names_that_do_not_exist(open_model, generator_for):
    generator = generator_for(open_model("tiny-llama"))
    generator.append_tokens([40])
    with pytest.raises(og.EngineError, match="'x' was not found"):
        generator.get_input("x")
    with pytest.raises(og.EngineError, match="'x' was not found"):
        generator.get_output("x")


def test_runtime_options_are_two_strings(open_model, generator_for):
    generator = generator_for(open_model("tiny-llama"))
    wrong = [("terminate_session", "2"), ("a", 1), (1, "a"), ("", ""), ("x" * 5000, "1")]
    for key, value in wrong:
        with pytest.raises(SENTENCE):
            generator.set_runtime_option(key, value)
    generator.use_stop(og.Stop())  # what was refused is not tried again
    generator.append_tokens([40])


def test_run_options_of_the_config_that_the_runtime_refuses(folder, generator_for):
    change(folder, model__decoder__run_options={"": "1"})
    with pytest.raises(og.EngineError, match="refuses"):
        generator_for(og.Model(folder))


def test_closed_things_say_so(data_folder, generator_for):
    model = og.Model(data_folder / "tiny-llama")
    with generator_for(model) as generator:
        generator.append_tokens([40])
    for call in (generator.generate_next_token, generator.get_logits):
        with pytest.raises(og.EngineError, match="closed"):
            call()
    with pytest.raises(og.EngineError, match="closed"):
        generator.append_tokens([40])
    model.close()
    with pytest.raises(og.EngineError, match="closed"):
        generator_for(model)


@pytest.mark.parametrize(
    "array", [[1, 2], "x", None, np.array(["a"]), np.array([1 + 2j])], ids=repr
)
def test_tensors_hold_arrays_of_numbers(array):
    with pytest.raises(TypeError):
        og.Tensor(array)


def test_tensors_copy_and_keep_the_order():
    array = np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3))
    tensor = og.Tensor(array)
    array[0, 0] = 99
    assert tensor.shape() == [2, 3]
    assert tensor.as_numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    named = og.NamedTensors()
    named["x"] = tensor
    assert named.keys() == ["x"]
    assert len(named) == 1
    del named["x"]
    del named["x"]
    with pytest.raises(KeyError):
        named["x"]


def test_wrong_log_options():
    for call in (
        lambda: og.set_log_options(colour=True),
        lambda: og.set_log_options(enabled="yes"),
        lambda: og.set_log_options(filename=3),
        lambda: og.set_log_options(filename="/nowhere/at/all.log"),
        lambda: og.set_current_gpu_device_id(-1),
        lambda: og.register_execution_provider_library("x", "/nowhere.so"),
        lambda: og.unregister_execution_provider_library("x"),
        lambda: og.set_log_callback(3),
    ):
        with pytest.raises(SENTENCE):
            call()


def test_the_log_tells_each_token(open_model, generator_for):
    lines = []
    og.set_log_options(enabled=True, generate_next_token=True)
    og.set_log_callback(lines.append)
    try:
        generator = generator_for(open_model("tiny-llama"))
        generator.append_tokens([40])
        generator.generate_next_token()
    finally:
        og.set_log_callback(None)
        og.set_log_options(enabled=False, generate_next_token=False)
    assert len(lines) == 1
