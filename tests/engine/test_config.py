"""Config: what may be changed before a model is opened, and what then holds."""

import json
import shutil

import numpy as np
import pytest

from app import engine as og
from app.engine.config import DeviceFilter

SENTENCE = (og.EngineError, ValueError, TypeError)


@pytest.fixture
def folder(data_folder):
    return data_folder / "tiny-llama-gqa"


def frozen(folder, change):
    config = og.Config(folder)
    change(config)
    return config.freeze()


def test_an_overlay_merges_objects_and_replaces_everything_else(folder):
    config = og.Config(folder)
    config.overlay('{"model": {"eos_token_id": [7], "decoder": {"run_options": {"a": "1"}}}}')
    config.overlay('{"search": {"top_k": 3}, "model": {"decoder": {"run_options": {"b": 2}}}}')
    found = config.freeze()
    assert found.model.eos_token_ids == (7,)
    assert found.search.top_k == 3
    assert found.model.decoder.run_options == {"a": "1", "b": "2"}
    assert found.model.decoder.filename == og.Config(folder).freeze().model.decoder.filename


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", "3", None, 3, "[" * 100_000, '{"model": {"decoder": 3}}', b"\xff",
        '{"model": {"decoder": {"session_options": {"provider_options": 3}}}}',
    ],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_an_overlay_that_does_not_fit_changes_nothing(folder, text):
    config = og.Config(folder)
    before = config.freeze()
    with pytest.raises(SENTENCE):
        config.overlay(text)
    assert config.freeze() == before


def test_providers_are_a_list_in_order_and_their_options_replace(folder):
    def change(config):
        config.append_provider("CUDAExecutionProvider")
        config.append_provider("cpu")
        config.append_provider("cuda")
        for value in ("1", "0"):  # the later one holds
            config.set_provider_option("CUDA", "enable_cuda_graph", value)

    found = frozen(folder, change)
    assert [p.name for p in found.providers] == ["cuda", "cpu"]
    assert found.providers[0].options == {"enable_cuda_graph": "0"}
    assert frozen(folder, lambda c: (change(c), c.clear_providers())).providers == ()


def test_devices_are_chosen_by_kind_number_and_maker(folder):
    def change(config):
        config.append_provider("webgpu")
        config.set_decoder_provider_options_hardware_device_type("webgpu", "GPU")
        config.set_decoder_provider_options_hardware_device_id("webgpu", np.int64(5))
        config.set_decoder_provider_options_hardware_vendor_id("WebGpuExecutionProvider", 4318)

    assert frozen(folder, change).providers[0].device == DeviceFilter("gpu", 5, 4318)

    def clear(config):
        change(config)
        config.clear_decoder_provider_options_hardware_device_type("webgpu")
        config.clear_decoder_provider_options_hardware_device_id("webgpu")
        config.clear_decoder_provider_options_hardware_vendor_id("webgpu")

    assert frozen(folder, clear).providers[0].device == DeviceFilter()
    chosen = DeviceFilter("gpu", None, 4318)
    assert chosen.fits("gpu", 1, 4318)
    assert not chosen.fits("cpu", 1, 4318)
    assert not chosen.fits("gpu", 1, 4098)


def test_the_file_may_choose_devices_too(folder, tmp_path):
    copy = tmp_path / "m"
    shutil.copytree(folder, copy)
    path = copy / "genai_config.json"
    document = json.loads(path.read_text())
    options = document["model"]["decoder"]["session_options"]
    wanted = {"hardware_device_type": "npu", "hardware_vendor_id": 9}
    options["provider_options"] = [{"webgpu": {"device_filtering_options": wanted, "a": "1"}}]
    path.write_text(json.dumps(document))
    provider = og.Config(copy).freeze().providers[0]
    assert provider.device == DeviceFilter("npu", None, 9)
    assert provider.options == {"a": "1"}
    for wrong in ({"hardware_device_type": "abacus"}, {"hardware_device_id": -1}, 3):
        options["provider_options"] = [{"webgpu": {"device_filtering_options": wrong}}]
        path.write_text(json.dumps(document))
        with pytest.raises(og.ModelError, match="device_filtering_options"):
            og.Config(copy)


def test_a_device_that_is_not_there_is_not_used_and_the_log_says_so(folder, caplog):
    config = og.Config(folder)
    config.append_provider("webgpu")
    config.set_decoder_provider_options_hardware_vendor_id("webgpu", 2**32 - 1)
    with og.Model(config) as model:
        assert model.device_type == "CPU"
    assert "webgpu" in caplog.text


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.set_decoder_provider_options_hardware_device_type("webgpu", "abacus"),
        lambda c: c.set_decoder_provider_options_hardware_device_type("webgpu", 3),
        lambda c: c.set_decoder_provider_options_hardware_device_id("webgpu", -1),
        lambda c: c.set_decoder_provider_options_hardware_device_id("webgpu", "1"),
        lambda c: c.set_decoder_provider_options_hardware_vendor_id("webgpu", 2**40),
        lambda c: c.set_decoder_provider_options_hardware_vendor_id("abacus", 1),
        lambda c: c.clear_decoder_provider_options_hardware_vendor_id(None),
        lambda c: c.append_provider(3),
        lambda c: c.set_provider_option("abacus", "a", "b"),
        lambda c: c.add_model_data(3, b"x"),
        lambda c: c.add_model_data("x", 5),
        lambda c: c.add_model_data("x", "text"),
        lambda c: c.add_model_data("x", b""),
        lambda c: c.remove_model_data("x"),
        lambda c: c.remove_model_data(None),
    ],
)
def test_wrong_changes_are_refused_and_change_nothing(folder, call):
    config = og.Config(folder)
    before = config.freeze()
    with pytest.raises(SENTENCE):
        call(config)
    assert config.freeze() == before


def test_a_models_bytes_may_be_given_and_taken_back(folder):
    data = np.frombuffer((folder / "model.onnx").read_bytes(), np.uint8).copy()
    config = og.Config(folder)
    config.add_model_data("model.onnx", data)
    data[:] = 0  # it was copied
    og.Model(config).close()
    config.add_model_data("model.onnx", b"no model")
    with pytest.raises(og.ModelError):
        og.Model(config)
    config.remove_model_data("model.onnx")
    og.Model(config).close()


def test_a_folder_is_opened_on_one_provider_and_a_package_is_not_read(folder, tmp_path):
    config = og.Config.from_package_ep(folder, "cpu")
    assert [p.name for p in config.freeze().providers] == ["cpu"]
    assert og.Config.from_package_ep(folder, "").freeze() == og.Config(folder).freeze()
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(og.ModelError, match="several variants"):
        og.Config.from_package_ep(tmp_path, "cpu")


def exported(folder, to, *, subfolder="", **values):
    """A folder as exporters of plain graphs make it: config.json and no genai_config.json."""
    (to / subfolder).mkdir(parents=True)
    shutil.copy(folder / "model.onnx", to / subfolder / "model.onnx")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(folder / name, to)
    config = {"model_type": "llama", "vocab_size": 512, "max_position_embeddings": 256}
    config |= {"eos_token_id": [0, 5], "pad_token_id": 1, "bos_token_id": 0, **values}
    config = {name: value for name, value in config.items() if value is not ...}
    (to / "config.json").write_text(json.dumps(config))
    return to


@pytest.mark.parametrize("subfolder", ["", "onnx"])
def test_an_export_with_a_config_of_another_kind_is_opened(
    folder, tmp_path, subfolder, open_model, generator_for
):
    to = exported(folder, tmp_path / "m", subfolder=subfolder)
    (to / "generation_config.json").write_text('{"temperature": 0.6, "eos_token_id": 7}')
    plain = generator_for(open_model("tiny-llama-gqa"), max_length=30)
    plain.append_tokens([40, 41])
    for path in (to, to / subfolder / "model.onnx"):
        with og.Model(path) as model:
            assert model.config.model.eos_token_ids == (0, 5, 7)
            assert model.config.search.temperature == 0.6
            assert og.Tokenizer(model).decode(og.Tokenizer(model).encode("Hi")) == "Hi"
            subject = generator_for(model, max_length=30)
            subject.append_tokens([40, 41])
            for _ in range(10):
                for generator in (subject, plain):
                    if not generator.is_done():
                        generator.generate_next_token()
            assert subject.get_sequence(0).tolist()[:12] == plain.get_sequence(0).tolist()[:12]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"vocab_size": ...}, "vocab_size is missing"),
        ({"max_position_embeddings": ...}, "max_position_embeddings is missing"),
        ({"eos_token_id": ...}, "eos_token_id is missing"),
        ({"eos_token_id": []}, "eos_token_id is missing"),
        ({"eos_token_id": "end"}, "eos_token_id"),
        ({"vocab_size": "many"}, "vocab_size"),
    ],
)
def test_an_export_that_says_too_little_says_what_is_missing(folder, tmp_path, values, words):
    with pytest.raises(og.ModelError, match=words):
        og.Model(exported(folder, tmp_path / "m", **values))


def test_an_export_of_many_graphs_is_opened_by_one_of_them(folder, tmp_path):
    to = exported(folder, tmp_path / "m", subfolder="onnx")
    (to / "onnx" / "model.onnx").rename(to / "onnx" / "model_a.onnx")
    shutil.copy(to / "onnx" / "model_a.onnx", to / "onnx" / "model_b.onnx")
    with pytest.raises(og.ModelError, match=r"model_a\.onnx, model_b\.onnx"):
        og.Model(to)
    og.Model(to / "onnx" / "model_b.onnx").close()


def test_telemetry_cannot_be_enabled(caplog):
    og.disable_telemetry_events()
    og.enable_telemetry_events()
    assert "stays off" in caplog.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window_size", 0), ("window_size", "16"), ("window_size", None), ("pad_value", 0.5),
        ("pad_value", []), ("alignment", "middle"), ("alignment", 1), ("slide_inputs", 1),
        ("slide_key_value_cache", "yes"), ("layers", 3), ("layers", [-1]), ("layers", [True]),
        ("cache_slack", -1),
    ],
)  # fmt: skip
def test_a_wrong_word_about_the_window_is_told_with_file_and_field(folder, name, value):
    config = og.Config(folder)
    window = {"window_size": 16, "slide_inputs": False, name: value}
    config.overlay(json.dumps({"model": {"decoder": {"sliding_window": window}}}))
    with pytest.raises(og.ModelError, match=rf"genai_config.json: .*sliding_window\.{name} "):
        config.freeze()


def test_an_unknown_word_about_the_window_is_told_in_the_log(folder, caplog):
    config = og.Config(folder)
    window = {"window_size": 16, "slide_inputs": False, "colour": "blue"}
    config.overlay(json.dumps({"model": {"decoder": {"sliding_window": window}}}))
    config.freeze()
    assert "model.decoder.sliding_window.colour is not known" in caplog.text
