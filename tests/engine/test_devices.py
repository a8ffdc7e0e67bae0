"""The same tokens on every device that works here; growth, cuts and rewinds happen on it.

Where there is no GPU, WebGPU runs on a graphics card made of software (packaging/setup/webgpu.py).
"""

from collections import Counter

import numpy as np
import pytest

from app import engine as og
from app.engine import adapters, decoder, devices, graph, session
from app.engine.caches import growing, shared, state, window

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
    monkeypatch.setattr(shared, "STEP", 16)
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
    monkeypatch.setattr(shared, "STEP", 8)
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
    monkeypatch.setattr(shared, "STEP", 8)
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


@pytest.mark.parametrize("name", ["window", "windows"])
def test_layers_with_a_window_hold_no_more_than_that(
    device, name, variant, open_on, generator_for, monkeypatch
):
    texts = []
    for place, slack in (("cpu", 1000), (device, 8)):
        monkeypatch.setattr(window, "SLACK", slack)
        with open_on(place, variant(name)) as model:
            assert bool(model.session.windows) == (slack == 8)
            generator = generator_for(model, max_length=90, chunk_size=7)
            generator.append_tokens(list(range(70, 100)))
            for _ in range(14):
                generator.generate_next_token()
            generator.rewind_to(generator.token_count() - 2)
            generator.append_tokens([80, 81])
            texts.append(written(generator))
            for port, size in model.session.windows.items():
                assert generator.get_input(port).shape[2] <= size + 8
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


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-llama-gqa", "recurrent", "combined"])
@pytest.mark.parametrize("seed", [1, 2])
def test_any_order_of_calls_gives_what_it_gives_on_the_host(
    device, name, seed, folder_of, open_on, generator_for, monkeypatch
):
    """Also back to nothing, and from there to more than was ever read."""
    monkeypatch.setattr(shared, "STEP", 8)
    found = []
    for place in ("cpu", device):
        random = np.random.default_rng(seed)
        with open_on(place, folder_of(name)) as model:
            generator = generator_for(model, max_length=200, chunk_size=5)
            for _ in range(14):
                length = generator.token_count()
                kind = random.choice(["append", "generate", "rewind", "nothing", "snapshot"])
                if kind == "append" or length == 0:
                    generator.append_tokens(random.integers(40, 500, random.integers(1, 13)))
                elif kind == "generate":
                    for _ in range(random.integers(1, 6)):
                        generator.generate_next_token()
                elif kind == "snapshot":
                    generator.snapshot_state()
                else:
                    generator.rewind_to(0 if kind == "nothing" else random.integers(length + 1))
            generator.append_tokens([70, 71])
            found.append((generator.get_sequence(0).tolist(), generator.get_logits()))
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[0][1], found[1][1], atol=2e-3)


def test_guesses_are_read_and_taken_back_as_on_the_host(
    device, data_folder, open_on, generator_for
):
    texts = []
    for place, guesses in (("cpu", 0), (device, 2)):
        with open_on(place, data_folder / "tiny-llama-gqa") as model:
            params = og.GeneratorParams(model)
            params.set_search_options(max_length=60)
            if guesses:
                params.set_speculative_options(ngram_size=guesses)
            generator = og.Generator(model, params)
            generator.append_tokens([40, 41, 42, 40, 41, 42, 40, 41])
            texts.append(written(generator))
    assert texts[0] == texts[1]


def test_adapters_act_as_on_the_host(device, data_folder, open_on, generator_for):
    folder = data_folder / "tiny-llama"
    texts = []
    for place in ("cpu", device):
        with open_on(place, folder) as model:
            adapters = og.Adapters(model)
            for name in "ab":
                adapters.load(folder / f"adapter_{name}.onnx_adapter", name)
            generator = generator_for(model, max_length=20)
            generator.append_tokens([40, 41, 42])
            for change in ("a", "b", None, "a"):
                generator.set_active_adapter(adapters, change)
                for _ in range(4):
                    generator.generate_next_token()
            texts.append(generator.get_sequence(0).tolist())
    assert texts[0] == texts[1]


class Border:
    """Counts what crosses between the host and the device, and which names runs bind on the host.

    `moved` counts our own ways across; `bound` the names of a run's inputs and outputs whose
    tensors lie on the host although the graph wants them on its device.
    """

    def __init__(self, monkeypatch):
        self.moved, self.bound = Counter(), Counter()
        self.logits_bytes: set[int] = set()  # of single runs
        self.helper_bytes = 0  # what the largest input from the host of a small graph of ours holds
        for module in (adapters, decoder, growing, shared, state, window):
            monkeypatch.setattr(module, "to_numpy", self._counted("to_numpy", session.to_numpy))
        monkeypatch.setattr(devices, "copy", self._counted("copy", devices.copy))
        plain_run = session.Session.run

        def run(subject, binding, stop):
            self._look(subject, binding._bound_inputs)
            plain_run(subject, binding, stop)
            self._look(subject, binding._bound_outputs)

        plain_apply = session.Session._apply

        def apply(subject, make, given, *others):
            for tensor in given.values():
                if tensor.device_name() == "cpu":
                    self.helper_bytes = max(self.helper_bytes, tensor.tensor_size_in_bytes())
            plain_apply(subject, make, given, *others)

        monkeypatch.setattr(session.Session, "run", run)
        monkeypatch.setattr(session.Session, "_apply", apply)

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
                if name == "logits":
                    self.logits_bytes.add(tensor.tensor_size_in_bytes())


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}], ids=["greedy", "beams"])
@pytest.mark.parametrize(
    "name", ["tiny-llama", "tiny-llama-gqa", "tiny-pipeline", "tiny-whisper", "recurrent"]
)
def test_only_ids_masks_positions_and_logits_cross_to_the_host(
    other_device, name, options, folder_of, open_on, generator_for, monkeypatch
):
    """Through growth, a beam's moves and a rewind; asking for an output is what brings it over."""
    monkeypatch.setattr(shared, "STEP", 8)
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
        rows, vocabulary = options.get("num_beams", 1), generator.get_logits().shape[1]
        assert border.logits_bytes == {rows * vocabulary * 4}
        assert border.helper_bytes <= 64  # a length, a shape, numbers of rows
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
