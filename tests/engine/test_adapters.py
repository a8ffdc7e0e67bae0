"""Adapter files on a graph with LoRA inputs: against plain runs, and the peer."""

import contextlib
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest

from app import engine as og

PROMPT = [40, 41, 42, 43]


@pytest.fixture
def folder(data_folder):
    return data_folder / "tiny-llama"


@pytest.fixture
def adapters(open_model, folder):
    found = og.Adapters(open_model("tiny-llama"))
    for name in "ab":
        found.load(folder / f"adapter_{name}.onnx_adapter", name)
    return found


def weights_of(folder, adapter):
    file = onnxruntime.AdapterFormat.read_adapter(str(folder / f"adapter_{adapter}.onnx_adapter"))
    return {name: value.numpy().copy() for name, value in file.get_parameters().items()}


def expected_logits(folder, text, adapter):
    """One plain run with an adapter's weights fed by hand; None: without."""
    return plain_logits(folder, text, weights_of(folder, adapter) if adapter else {})


def plain_logits(folder, text, weights):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    feeds = {
        "input_ids": np.array([text]),
        "attention_mask": np.ones((1, len(text)), np.int64),
        "position_ids": np.arange(len(text))[None],
        **weights,
    }
    for info in session.get_inputs():
        if info.name.startswith("past"):
            feeds[info.name] = np.zeros((1, 2, 0, 16), np.float32)
    return session.run(["logits"], feeds)[0][0, -1]


def summed(folder, names):
    """The sum of what adapters add, as one adapter of full rank: no ranks are joined in it."""
    loaded = [weights_of(folder, name) for name in names]
    total = sum(one["lora_A"] @ one["lora_B"] for one in loaded)
    return {"lora_A": np.eye(32, dtype=np.float32), "lora_B": total} if loaded else {}


@pytest.fixture
def free_folder(folder, tmp_path):
    """The same graph with the rank of its low-rank inputs left open."""
    copy = tmp_path / "free"
    shutil.copytree(folder, copy)
    model = onnx.load(str(copy / "model.onnx"))
    for value in model.graph.input:
        if value.name in ("lora_A", "lora_B"):
            axis = 1 if value.name == "lora_A" else 0
            value.type.tensor_type.shape.dim[axis].dim_param = "rank"
    onnx.save(model, str(copy / "model.onnx"))
    return copy


def export(path, parameters):
    adapter = onnxruntime.AdapterFormat()
    adapter.set_adapter_version(1)
    adapter.set_model_version(1)
    values = {k: onnxruntime.OrtValue.ortvalue_from_numpy(v) for k, v in parameters.items()}
    adapter.set_parameters(values)  # borrowed until export
    adapter.export_adapter(str(path))


def open_adapters(folder, *, extra=()):
    """A model, its adapters a and b, and further ones as (name, parameters)."""
    model = og.Model(folder)
    found = og.Adapters(model)
    for name in "ab":
        found.load(folder / f"adapter_{name}.onnx_adapter", name)
    for name, parameters in extra:
        export(folder / f"{name}.onnx_adapter", parameters)
        found.load(folder / f"{name}.onnx_adapter", name)
    return model, found


def test_adapters_at_once_act_as_their_sum(free_folder, generator_for):
    random = np.random.default_rng(3)
    wide = {
        "lora_A": random.normal(size=(32, 7)).astype(np.float32),
        "lora_B": random.normal(size=(7, 512)).astype(np.float32),
    }
    model, adapters = open_adapters(free_folder, extra=[("c", wide)])
    shutil.copy(free_folder / "c.onnx_adapter", free_folder / "adapter_c.onnx_adapter")
    generator = generator_for(model, max_length=60)
    for names in (["a", "b"], ["a"], ["b", "a"], ["c", "a", "b"], ["a", "a"], [], ["b", "c"]):
        generator.set_active_adapter(adapters, names)
        generator.rewind_to(0)
        generator.append_tokens(PROMPT)
        text = list(PROMPT)
        for _ in range(4):
            weights = summed(free_folder, dict.fromkeys(names))
            expected = plain_logits(free_folder, text, weights)
            np.testing.assert_allclose(generator.get_logits()[0], expected, rtol=1e-3, atol=2e-3)
            generator.generate_next_token()
            text = generator.get_sequence(0).tolist()


def test_turns_with_one_adapter_another_and_none_equal_cold_runs(free_folder, generator_for):
    model, adapters = open_adapters(free_folder)

    def continued(generator):
        for _ in range(6):
            generator.generate_next_token()
        return generator.get_sequence(0).tolist()

    warm = generator_for(model, max_length=40)
    for names in ("a", "b", ["a", "b"], None, "a"):
        warm.set_active_adapter(adapters, names)
        warm.rewind_to(0)
        warm.append_tokens(PROMPT)
        cold = generator_for(model, max_length=40)
        cold.set_active_adapter(adapters, names)
        cold.append_tokens(PROMPT)
        np.testing.assert_array_equal(warm.get_logits(), cold.get_logits())
        assert continued(warm) == continued(cold)


def test_generators_of_one_model_each_have_their_own_adapters_at_once(free_folder, generator_for):
    model, adapters = open_adapters(free_folder)
    chosen = (None, ["a"], ["b"], ["a", "b"])
    generators = [generator_for(model, max_length=40) for _ in chosen]
    for generator, names in zip(generators, chosen, strict=True):
        generator.set_active_adapter(adapters, names)
        generator.append_tokens(PROMPT)
    texts = [list(PROMPT) for _ in chosen]
    for _ in range(3):  # in turns, so that one could see what another has bound
        for index, generator in enumerate(generators):
            expected = plain_logits(
                free_folder, texts[index], summed(free_folder, chosen[index] or [])
            )
            np.testing.assert_allclose(generator.get_logits()[0], expected, rtol=1e-3, atol=2e-3)
            generator.generate_next_token()
            texts[index] = generator.get_sequence(0).tolist()


def test_adapters_that_cannot_act_at_once_say_why(
    open_model, generator_for, adapters, free_folder, folder
):
    generator = generator_for(open_model("tiny-llama"))
    generator.set_active_adapter(adapters, "a")
    with pytest.raises(og.EngineError, match="fixes the rank of lora_"):
        generator.set_active_adapter(adapters, ["a", "b"])
    generator.append_tokens(PROMPT)  # and the one before goes on acting
    expected = expected_logits(folder, PROMPT, "a")
    np.testing.assert_allclose(generator.get_logits()[0], expected, atol=1e-3)

    half = {"lora_A": np.zeros((32, 4), np.float32)}
    uneven = {"lora_A": np.zeros((32, 3), np.float32), "lora_B": np.zeros((5, 512), np.float32)}
    model, free = open_adapters(free_folder, extra=[("half", half), ("uneven", uneven)])
    generator = generator_for(model)
    with pytest.raises(og.EngineError, match="not half of a low-rank pair"):
        generator.set_active_adapter(free, ["a", "half"])
    with pytest.raises(og.EngineError, match="'uneven' differ in rank"):
        generator.set_active_adapter(free, ["a", "uneven"])
    generator.set_active_adapter(free, ["a"])


def test_the_active_adapter_is_the_one_set_last_and_none_clears(
    open_model, generator_for, adapters, folder
):
    generator = generator_for(open_model("tiny-llama"))
    text = []
    for names, acting in (
        (None, None), ("a", "a"), ("b", "b"), (["a"], "a"), ([], None), ("a", "a"), (None, None),
    ):  # fmt: skip
        generator.set_active_adapter(adapters, names)
        generator.append_tokens(PROMPT)
        text += PROMPT
        logits = generator.get_logits()[0]
        np.testing.assert_allclose(logits, expected_logits(folder, text, acting), atol=1e-3)
        generator.generate_next_token()
        text = generator.get_sequence(0).tolist()


@pytest.mark.peer
@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize(
    "options", [{}, {"num_beams": 2}, {"do_sample": True, "top_k": 20}], ids=str
)
def test_texts_are_the_peers(name, options, folder):
    peer = pytest.importorskip("onnxruntime_genai")
    texts = []
    for library in (og, peer):
        model = library.Model(str(folder))
        adapters = library.Adapters(model)
        adapters.load(str(folder / f"adapter_{name}.onnx_adapter"), name)
        params = library.GeneratorParams(model)
        params.set_search_options(max_length=40, random_seed=4, **options)
        generator = library.Generator(model, params)
        generator.set_active_adapter(adapters, name)
        generator.append_tokens(np.array(PROMPT, np.int32))
        while not generator.is_done():
            generator.generate_next_token()
        texts.append(np.asarray(generator.get_sequence(0)).tolist())
    assert texts[0] == texts[1]


def test_generators_of_one_model_have_their_own(open_model, generator_for, adapters, folder):
    model = open_model("tiny-llama")
    with_a, plain = generator_for(model), generator_for(model)
    with_a.set_active_adapter(adapters, "a")
    for generator, acting in ((with_a, "a"), (plain, None), (with_a, "a")):
        generator.rewind_to(0)
        generator.append_tokens(PROMPT)
        expected = expected_logits(folder, PROMPT, acting)
        np.testing.assert_allclose(generator.get_logits()[0], expected, atol=1e-3)


def test_an_adapter_in_use_stays_loaded(open_model, generator_for, adapters):
    generator = generator_for(open_model("tiny-llama"))
    generator.set_active_adapter(adapters, "a")
    with pytest.raises(og.EngineError, match="in use"):
        adapters.unload("a")
    generator.set_active_adapter(adapters, "b")
    adapters.unload("a")
    generator.close()
    adapters.unload("b")


def test_wrong_adapters_say_what_is_wrong(open_model, generator_for, adapters, folder, tmp_path):
    good = folder / "adapter_a.onnx_adapter"
    cut = tmp_path / "cut.onnx_adapter"
    cut.write_bytes(good.read_bytes()[:300])
    generator = generator_for(open_model("tiny-llama"))
    with pytest.raises(og.EngineError, match="already"):
        adapters.load(good, "a")
    with pytest.raises(og.EngineError, match="'c'"):
        adapters.unload("c")
    with pytest.raises(og.EngineError, match="'c'"):
        generator.set_active_adapter(adapters, ["a", "c"])
    with pytest.raises(og.ModelError, match="cut"):
        adapters.load(cut, "c")
    with pytest.raises(og.ModelError, match=r"nowhere\.onnx_adapter"):
        adapters.load(tmp_path / "nowhere.onnx_adapter", "c")
    with pytest.raises(TypeError):
        generator.set_active_adapter("a", "a")
    with pytest.raises(og.ModelError, match="lora_"):
        og.Adapters(open_model("tiny-llama-gqa")).load(good, "a")


def test_adapters_of_another_shape_are_refused_at_load(open_model, tmp_path):
    export(tmp_path / "wide.onnx_adapter", {"lora_A": np.zeros((32, 8), np.float32)})
    with pytest.raises(og.ModelError, match=r"lora_A .*\[32, 8\].*\[32, 4\]"):
        og.Adapters(open_model("tiny-llama")).load(tmp_path / "wide.onnx_adapter", "wide")


def test_files_of_any_bytes_are_refused_or_read(open_model, folder, tmp_path):
    data = (folder / "adapter_a.onnx_adapter").read_bytes()
    file = tmp_path / "x.onnx_adapter"
    for seed in range(60):
        random = np.random.default_rng(seed)
        changed = bytearray(data)
        for place in random.integers(0, 400, 4):
            changed[place] = random.integers(256)
        file.write_bytes(changed)
        with contextlib.suppress(og.EngineError):
            og.Adapters(open_model("tiny-llama")).load(file, f"seed {seed}")


def test_the_folder_of_an_adapter_may_be_named_in_any_language(open_model, folder, tmp_path):
    place = tmp_path / "\u6a21\u578b"
    place.mkdir()
    shutil.copy(folder / "adapter_a.onnx_adapter", place)
    og.Adapters(open_model("tiny-llama")).load(place / "adapter_a.onnx_adapter", "a")
