"""docs/engine.md says what the engine offers: it names all of it, its tests exist, it is true."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

from app import engine as og
from app.engine.config import SearchOptions

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")
INHERITED = set(dir(RuntimeError))
# Of the peer's names, what the page says is not here.
NOT_HERE = {
    "Audios", "Engine", "EngineCapabilities", "EngineErrorCode", "EngineEvent",
    "EngineEventBuffer", "EngineEventFlags", "FinishReason", "Images", "MtpGenerator",
    "MultiModalProcessor", "Request", "RequestOptions", "StreamingProcessor", "TurnOptions",
    "TurnUsage", "Model.create_multimodal_processor", "Model.create_streaming_processor",
}  # fmt: skip


def rows(heading):
    """The cells of the table rows under a heading of the second level."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\| (?!name \||option \||symptom \|)(.+) \|$", section, re.MULTILINE)
    return [line.split(" | ") for line in lines]


def public_names(module):
    for name in (n for n in dir(module) if not n.startswith("_")):
        thing = getattr(module, name)
        if isinstance(thing, type):
            yield name
            for part in dir(thing):
                if not part.startswith("_") and part not in INHERITED:
                    yield f"{name}.{part}"
        elif callable(thing):
            yield name


def test_the_page_names_every_public_method():
    listed = [cells[0] for cells in rows("Methods")]
    assert len(listed) == len(set(listed))
    ours = {name for name in public_names(og) if name.split(".")[0] in og.__all__}
    made_at_once = {"Model.type", "Model.device_type", "Tokenizer.bos_token_id",
                    "Tokenizer.pad_token_id"}  # fmt: skip
    assert set(listed) == ours | made_at_once


def test_every_test_that_the_page_names_exists():
    named = set(re.findall(r"\| (test_\w+)::(test_\w+) \|$", PAGE, re.MULTILINE))
    assert len(named) > 80
    for file, test in sorted(named):
        text = (ROOT / "tests" / "engine" / f"{file}.py").read_text(encoding="utf-8")
        assert re.search(rf"^def {test}\(", text, re.MULTILINE), f"{file}::{test}"
    for heading in ("Methods", "Search options", "What users of the peer stumble over"):
        for cells in rows(heading):
            assert re.fullmatch(r"test_\w+::test_\w+", cells[-1]), cells


def test_the_page_tells_every_option_with_its_default():
    told = {cells[0]: cells[1] for cells in rows("Search options")}
    defaults = {f.name: str(f.default) for f in dataclasses.fields(SearchOptions)}
    defaults["max_length"] = "context_length"
    assert told == defaults


@pytest.mark.peer
def test_nothing_of_the_peer_is_missing_but_what_the_page_says():
    peer = pytest.importorskip("onnxruntime_genai")
    listed = {cells[0] for cells in rows("Methods")}
    theirs = {name for name in public_names(peer) if name.split(".")[0] not in NOT_HERE}
    assert theirs - NOT_HERE - listed == set()


def test_ids_are_the_configs(open_model):
    for name in ("tiny-llama", "tiny-spm"):
        model = open_model(name)
        tokenizer = og.Tokenizer(model)
        assert tokenizer.bos_token_id == model.config.model.bos_token_id
        assert tokenizer.pad_token_id == model.config.model.pad_token_id
        assert set(model.config.model.eos_token_ids) == set(tokenizer.eos_token_ids.tolist())


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.uint16, np.int32, np.int64, np.float16,
                                  np.float32, np.float64])  # fmt: skip
def test_a_tensor_tells_its_type_and_its_numbers(kind):
    array = np.arange(6).reshape(2, 3).astype(kind)
    tensor = og.Tensor(array)
    assert tensor.type() == array.dtype
    assert tensor.data().tolist() == tensor.as_numpy().tolist() == array.tolist()


def test_what_is_available_is_what_works(data_folder):
    for name, is_available in (
        ("cuda", og.is_cuda_available()),
        ("webgpu", og.is_webgpu_available()),
        ("dml", og.is_dml_available()),
        ("qnn", og.is_qnn_available()),
        ("openvino", og.is_openvino_available()),
    ):
        config = og.Config(data_folder / "tiny-llama-gqa")
        config.clear_providers()
        config.append_provider(name)
        with og.Model(config) as model:
            assert (model.device_type.lower() == name) == is_available


def test_memory_that_is_not_there_has_an_error_of_its_own(data_folder, open_model, monkeypatch):
    """The runtime's own words, as it gives them when an allocation fails."""
    model = open_model("tiny-llama")
    generator = og.Generator(model, og.GeneratorParams(model))
    generator.append_tokens([40])

    def fails(*_):
        raise RuntimeError("Failed to allocate memory for requested buffer of size 1099511627776")

    with monkeypatch.context() as patch:
        patch.setattr(model.session, "_session", type("Full", (), {"run_with_iobinding": fails})())
        with pytest.raises(og.OutOfMemoryError, match="memory"):
            generator.append_tokens([41])
    assert generator.get_sequence(0).tolist() == [40]
    generator.append_tokens([41])
