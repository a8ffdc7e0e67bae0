"""The same tokens on every device that works here; growth, cuts and rewinds happen on it.

Where there is no GPU, WebGPU runs on a graphics card made of software (packaging/setup/webgpu.py).
"""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from app import engine as og
from app.engine import adapters, cache, decoder, devices, graph, session

PLAIN = ["tiny-llama", "tiny-llama-gqa", "tiny-llama-keep"]
KINDS = ["recurrent", "convolution", "gaps", "heads", "window", "combined", "odd-head", "unshared",
         "lengths", "fixed", "pruned", "tiny-pipeline", "tiny-qwen25vl", "tiny-gemma3"]  # fmt: skip
OURS = {"input_ids", "attention_mask", "position_ids", "num_logits_to_keep", "logits",
        graph.POSITIONS}  # fmt: skip


@pytest.fixture
def folder_of(variant, data_folder):
    return lambda name: data_folder / name if name.startswith("tiny") else variant(name)


def written(generator, count=1):
    while not generator.is_done():
        generator.generate_next_token()
    return [generator.get_sequence(i).tolist() for i in range(count)]


@pytest.mark.parametrize("name", PLAIN)
def test_tokens_and_logits_are_the_oracles(
    device, name, data_folder, open_on, generator_for, reference, monkeypatch
):
    monkeypatch.setattr(cache, "STEP", 16)
    with open_on(device, data_folder / name) as model:
        generator = generator_for(model, max_length=60, chunk_size=9)
        generator.append_tokens(list(range(100, 113)))
        for _ in range(12):
            generator.generate_next_token()
        generator.rewind_to(10)
        generator.append_tokens([40, 41])
        for _ in range(8):
            text = generator.get_sequence(0).tolist()
            expected = reference(data_folder / name, text)
            np.testing.assert_allclose(generator.get_logits()[0], expected, atol=2e-3)
            generator.generate_next_token()
            chosen = generator.get_next_tokens()[0]
            assert expected[chosen] >= expected.max() - 2e-3
        assert generator.get_output("present.0.key").shape[2] >= 19


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({}, [[40, 41, 42]]),
        ({"do_sample": True, "top_k": 20, "top_p": 0.9, "random_seed": 3}, [[40, 41, 42]]),
        ({"repetition_penalty": 1.3, "no_repeat_ngram_size": 2}, [[40, 41, 42]]),
        ({"batch_size": 3}, [[40, 41, 42], [50, 1, 1], [60, 61, 1]]),
        ({"num_beams": 3, "batch_size": 2}, [[40, 41, 42], [50, 51, 1]]),
    ],
    ids=["greedy", "sampled", "penalties", "batch", "beams"],
)
@pytest.mark.parametrize("name", ["tiny-llama", "tiny-llama-gqa"])
def test_every_search_writes_what_it_writes_on_the_host(
    device, name, options, rows, data_folder, open_on, generator_for, monkeypatch
):
    monkeypatch.setattr(cache, "STEP", 8)
    texts = []
    for place in ("cpu", device):
        with open_on(place, data_folder / name) as model:
            generator = generator_for(model, max_length=24, **options)
            generator.append_tokens(rows)
            texts.append(written(generator, len(rows)))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_model_writes_what_it_writes_on_the_host(
    device, name, folder_of, open_on, generator_for, monkeypatch
):
    monkeypatch.setattr(cache, "STEP", 8)
    texts = []
    for place in ("cpu", device):
        with open_on(place, folder_of(name)) as model:
            generator = generator_for(model, max_length=26)
            generator.append_tokens([70, 71, 72, 73])
            for _ in range(9):
                generator.generate_next_token()
            generator.rewind_to(7)
            generator.append_tokens([80, 81])
            texts.append(written(generator))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["recurrent", "window", "combined", "tiny-pipeline"])
def test_beams_of_every_kind_are_those_of_the_host(device, name, folder_of, open_on, generator_for):
    texts = []
    for place in ("cpu", device):
        with open_on(place, folder_of(name)) as model:
            generator = generator_for(model, max_length=16, num_beams=3)
            generator.append_tokens([70, 71, 72, 73])
            texts.append(written(generator))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("options", [{}, {"num_beams": 2}], ids=["greedy", "beams"])
def test_speech_becomes_the_text_that_it_becomes_on_the_host(
    device, options, data_folder, open_on, generator_for
):
    texts = []
    for place in ("cpu", device):
        with open_on(place, data_folder / "tiny-whisper") as model:
            generator = listening(generator_for(model, max_length=14, **options))
            texts.append(written(generator))
    assert texts[0] == texts[1]


def listening(generator):
    inputs = og.NamedTensors()
    sound = np.random.default_rng(1).standard_normal((1, 80, 3000)).astype(np.float32)
    inputs["audio_features"] = og.Tensor(sound)
    inputs["input_ids"] = og.Tensor(np.array([[5, 6, 7]], np.int32))
    generator.set_inputs(inputs)
    return generator


class Border:
    """Counts what crosses between the host and the device, and which names runs bind on the host.

    `moved` counts our own ways across; `bound` the names of a run's inputs and outputs whose
    tensors lie on the host although the graph wants them on its device.
    """

    def __init__(self, monkeypatch):
        self.moved, self.bound = Counter(), Counter()
        for module in (adapters, cache, decoder):
            monkeypatch.setattr(module, "to_numpy", self._counted("to_numpy", session.to_numpy))
        monkeypatch.setattr(devices, "copy", self._counted("copy", devices.copy))
        plain_run = session.Session.run

        def run(subject, binding, stop):
            self._look(subject, binding._bound_inputs)
            plain_run(subject, binding, stop)
            self._look(subject, binding._bound_outputs)

        monkeypatch.setattr(session.Session, "run", run)

    def clear(self):
        self.moved.clear()
        self.bound.clear()

    def _counted(self, name, function):
        def counted(*arguments):
            self.moved[name] += 1
            return function(*arguments)

        return counted

    def _look(self, subject, bound):
        for name, tensor in bound.items():
            if tensor is not None and tensor.device_name() == "cpu" and not subject.is_host(name):
                self.bound[name] += 1


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}], ids=["greedy", "beams"])
@pytest.mark.parametrize(
    "name", ["tiny-llama", "tiny-llama-gqa", "tiny-pipeline", "tiny-whisper", "recurrent"]
)
def test_only_ids_masks_positions_and_logits_cross_to_the_host(
    other_device, name, options, folder_of, open_on, generator_for, monkeypatch
):
    """Through growth, a beam's moves and a rewind; asking for an output is what brings it over."""
    monkeypatch.setattr(cache, "STEP", 8)
    with open_on(other_device, folder_of(name)) as model:
        generator = generator_for(model, max_length=40, **options)
        if name == "tiny-whisper":
            listening(generator)
        else:
            generator.append_tokens([70, 71, 72, 73])
        generator.generate_next_token()
        border = Border(monkeypatch)
        for _ in range(12):
            generator.generate_next_token()
        if not options:
            generator.rewind_to(6)
            generator.append_tokens([80])
            generator.generate_next_token()
        assert not border.moved
        assert set(border.bound) <= OURS
        assert border.bound["logits"] >= 12
        border.clear()
        kept = next(slot.present for slot in model.slots)
        assert generator.get_output(kept).size
        assert border.moved["to_numpy"] == 1
        assert border.moved["copy"] == 1


def test_what_a_graph_passes_on_stays_on_the_device(
    other_device, data_folder, open_on, generator_for
):
    with open_on(other_device, data_folder / "tiny-pipeline") as model:
        generator = generator_for(model, max_length=40)
        generator.append_tokens([70, 71, 72, 73])
        stages = generator._decoder._stages
        passed = [tensor for stage in stages[:-1] for tensor in stage.passed_on().values()]
        assert passed
        assert {tensor.device_name() for tensor in passed} == {other_device}


def test_a_stop_leaves_the_device_usable(device, data_folder, open_on, generator_for):
    with open_on(device, data_folder / "tiny-llama-gqa") as model:
        generator = generator_for(model)
        generator.append_tokens([40, 41])
        stop = og.Stop()
        stop.set()
        generator.use_stop(stop)
        with pytest.raises(og.Stopped):
            generator.append_tokens([42])
        generator.use_stop(None)
        generator.append_tokens([43])
        generator.generate_next_token()


@pytest.mark.webgpu
def test_a_device_without_16_bit_numbers_says_so(data_folder, open_on, generator_for):
    with open_on("webgpu", data_folder / "tiny-llama-fp16") as model:
        generator = generator_for(model)
        with pytest.raises(og.EngineError, match="16-bit"):  # the card made of software has none
            generator.append_tokens([40, 41])
        assert generator.token_count() == 0


# ---------------------------------------------------------------- what is said about devices


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
