"""What is said to work on this machine does, and what does not has its reason in words."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from app import engine as og
from app.engine import devices, graph

# A new process finds the loader of the card made of software here; in this one it is loaded.
CARD = {"LD_LIBRARY_PATH": os.path.dirname(os.environ.get("VK_DRIVER_FILES", ""))}
NO_DEVICE = {
    "CUDA_VISIBLE_DEVICES": "",
    "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1",  # so that WebGPU is there, and finds no driver
    "VK_ICD_FILENAMES": "/nowhere.json",
    "VK_DRIVER_FILES": "/nowhere.json",
}
NO_CARD = {**NO_DEVICE, "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "0"}


def alone(code, environment=None, arguments=()):
    """Runs `code` in a process of its own, since devices are looked for once; its two outputs."""
    head = "from app import engine as og\nfrom app.engine import devices\nimport logging, sys\n"
    done = subprocess.run(
        [sys.executable, "-c", head + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[2],
        env={**os.environ, **CARD, **(environment or {})},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr.strip()


def test_what_is_said_to_work_is_what_a_plain_session_runs_on():
    model = graph.zeros_model(1, rank=1, axis=0)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    plain = onnxruntime.InferenceSession(
        model, options, providers=[devices.CUDA, "CPUExecutionProvider"]
    )
    assert og.is_cuda_available() == (devices.CUDA in plain.get_providers())
    for name, said in [("cuda", og.is_cuda_available()), ("webgpu", og.is_webgpu_available())]:
        assert said == (not devices.problem(name))
    assert devices.problem("cpu") == ""
    assert not og.is_dml_available()
    assert not og.is_qnn_available()
    assert not og.is_openvino_available()


@pytest.mark.webgpu
def test_webgpu_is_said_to_work_where_a_plain_session_runs_on_it(open_on, data_folder):
    assert og.is_webgpu_available(), devices.problem("webgpu")
    found = [d for d in onnxruntime.get_ep_devices() if d.ep_name == devices.WEBGPU]
    options = onnxruntime.SessionOptions()
    options.add_provider_for_devices(found[:1], {})
    plain = onnxruntime.InferenceSession(graph.zeros_model(1, rank=1, axis=0), options)
    assert plain.get_providers()[0] == devices.WEBGPU
    assert plain.run(None, {"shape": np.array([3])})[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("environment", [NO_DEVICE, NO_CARD], ids=["no driver", "no card"])
def test_without_a_device_the_reason_is_told_in_words(environment):
    code = "print(og.is_cuda_available(), og.is_webgpu_available())\n"
    code += "print(devices.problem('cuda')); print(devices.problem('webgpu'))"
    works, cuda, webgpu = alone(code, environment)[0].splitlines()
    assert works == "False False"
    for words in (cuda, webgpu):
        assert len(words.split()) >= 4
        assert "/" not in words


def test_without_the_plug_in_the_reason_names_it():
    code = "sys.modules['onnxruntime_ep_webgpu'] = None\nprint(devices.problem('webgpu'))"
    assert "onnxruntime-ep-webgpu is not installed" in alone(code)[0]


@pytest.mark.parametrize("name", ["cuda", "webgpu"])
def test_a_model_whose_device_does_not_work_runs_on_the_processor_and_the_log_says_so(
    name, data_folder
):
    code = """
logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
config = og.Config(sys.argv[2])
config.clear_providers()
config.append_provider(sys.argv[1])
model = og.Model(config)
generator = og.Generator(model, og.GeneratorParams(model))
generator.append_tokens([40, 41])
generator.generate_next_token()
print(model.device_type, generator.token_count())
"""
    told, logged = alone(code, NO_DEVICE, [name, data_folder / "tiny-llama-gqa"])
    assert told == "CPU 3"  # and nothing else: it may be somebody's answer
    assert f"{name} is not used: " in logged
    assert f"{name} was asked for; the model runs on CPU" in logged


def test_a_provider_that_is_dropped_in_silence_is_named(monkeypatch, data_folder, caplog, open_on):
    """The runtime itself drops one that it cannot start; we look at what came out."""
    if not devices.problem("cuda"):
        pytest.skip("CUDA works here")
    monkeypatch.setattr(devices, "problem", lambda name: "")
    config = og.Config(data_folder / "tiny-llama-gqa")
    config.clear_providers()
    config.append_provider("cuda")
    with og.Model(config) as model:
        assert model.device_type == "CPU"
    assert "cuda was asked for; the model runs on CPU" in caplog.text


@pytest.mark.webgpu
@pytest.mark.parametrize("option", ["powerPreference", "deviceId"])
def test_options_that_a_device_refuses_are_told_and_the_processor_takes_over(option, data_folder):
    told, logged = alone(
        f"""
logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
config = og.Config(sys.argv[1])
config.clear_providers()
config.append_provider("webgpu")
config.set_provider_option("webgpu", "{option}", "77")
print(og.Model(config).device_type)
""",
        arguments=[data_folder / "tiny-llama-gqa"],
    )
    assert told == "CPU"
    assert "model.onnx does not start on webgpu: " in logged
    assert "webgpu was asked for; the model runs on CPU" in logged
    assert "Traceback" not in logged


@pytest.mark.webgpu
def test_a_provider_library_may_come_and_go_under_any_name():
    code = """
import onnxruntime, onnxruntime_ep_webgpu
path = onnxruntime_ep_webgpu.get_library_path()
og.register_execution_provider_library("mine", path)
print(og.is_webgpu_available(), len(devices._webgpu_devices()))
og.unregister_execution_provider_library("mine")
print([d for d in onnxruntime.get_ep_devices() if d.ep_name == devices.WEBGPU])
print(og.is_webgpu_available())
"""
    lines = alone(code)[0].splitlines()
    count = len(devices._webgpu_devices())
    assert lines == [f"True {count}", "[]", "True"]


def test_provider_libraries_that_are_none_are_refused(tmp_path):
    false = tmp_path / "nothing.so"
    false.write_bytes(b"nothing")
    for path in (false, tmp_path / "missing.so"):
        with pytest.raises(og.EngineError, match="cannot be loaded"):
            og.register_execution_provider_library("nothing", path)
    with pytest.raises(og.EngineError, match="No provider library"):
        og.unregister_execution_provider_library("nothing")


def test_the_current_gpu_is_kept_and_checked():
    before = og.get_current_gpu_device_id()
    try:
        og.set_current_gpu_device_id(np.int64(1))
        assert og.get_current_gpu_device_id() == 1
        for wrong in (-1, True):
            with pytest.raises(og.EngineError, match="0 or more"):
                og.set_current_gpu_device_id(wrong)
        assert og.get_current_gpu_device_id() == 1
    finally:
        og.set_current_gpu_device_id(before)


def test_cores_are_counted():
    assert 1 <= devices.physical_cores() <= 4096


@pytest.mark.parametrize("environment", [NO_CARD, NO_DEVICE], ids=["no card", "no driver"])
def test_the_reason_is_the_same_when_it_is_looked_for_again(environment):
    """A library that found no device stays loaded: it is not loaded a second time."""
    code = (
        "first = devices.problem('webgpu'); devices._forget_what_works();"
        "print(first); print(devices.problem('webgpu'))"
    )
    reasons = alone(code, environment)[0].splitlines()
    assert len(reasons) == 2
    assert reasons[0] == reasons[1] != ""
