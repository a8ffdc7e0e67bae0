"""The same tokens on every device that works here; growth, cuts and rewinds happen on it.

Without a GPU the WebGPU plug-in runs on a software Vulkan driver, if the environment names one.
"""

import numpy as np
import pytest

from app import engine as og
from app.engine import cache, devices

WORKING = ["cpu", *(name for name in ("cuda", "webgpu") if not devices.problem(name))]


@pytest.fixture(scope="module", params=WORKING)
def device(request):
    return request.param


def open_on(device, folder):
    config = og.Config(folder)
    config.clear_providers()
    config.append_provider(device)
    return og.Model(config)


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-llama-gqa", "tiny-llama-keep"])
def test_tokens_and_logits_are_the_oracles(
    device, name, data_folder, generator_for, reference, monkeypatch
):
    monkeypatch.setattr(cache, "STEP", 16)
    with open_on(device, data_folder / name) as model:
        assert model.device_type.lower() == device
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


def test_sampled_tokens_do_not_depend_on_the_device(device, data_folder, generator_for):
    texts = []
    for place in ("cpu", device):
        with open_on(place, data_folder / "tiny-llama-gqa") as model:
            generator = generator_for(
                model, max_length=40, do_sample=True, top_k=20, top_p=0.9, random_seed=3
            )
            generator.append_tokens([40, 41, 42])
            while not generator.is_done():
                generator.generate_next_token()
            texts.append(generator.get_sequence(0).tolist())
    assert texts[0] == texts[1]


def test_a_stop_leaves_the_device_usable(device, data_folder, generator_for):
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


def test_cores_are_counted():
    assert 1 <= devices.physical_cores() <= 4096


def test_beams_are_the_same_on_every_device(device, data_folder, generator_for):
    texts = []
    for place in ("cpu", device):
        with open_on(place, data_folder / "tiny-llama-gqa") as model:
            generator = generator_for(model, max_length=20, num_beams=3, batch_size=2)
            generator.append_tokens([[40, 41, 42], [50, 51, 1]])
            while not generator.is_done():
                generator.generate_next_token()
            texts.append([generator.get_sequence(i).tolist() for i in range(2)])
    assert texts[0] == texts[1]
