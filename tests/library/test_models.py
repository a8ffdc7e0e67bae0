"""The library lists whole models, says what a broken one lacks, and brings new ones in."""

import json
import os
import shutil
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import onnx
import pytest

from app.convert import Progress
from app.library import models as library
from app.library.models import (
    STARTER_NAME,
    LibraryError,
    ModelFolder,
    import_model,
    inspect,
    list_models,
)


@pytest.fixture
def tiny(data_folder: Path, tmp_path: Path) -> Path:
    """A model folder that a test may break."""
    return Path(shutil.copytree(data_folder / "tiny-llama", tmp_path / "tiny-llama"))


def exhaust(job: Generator[Progress, None, Path]) -> tuple[list[Progress], Path]:
    seen = []
    while True:
        try:
            seen.append(next(job))
        except StopIteration as end:
            return seen, end.value


def refusal(path: Path) -> str:
    with pytest.raises(LibraryError) as caught:
        inspect(path)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


def test_facts_come_from_the_folder(tiny: Path) -> None:
    size = sum(f.stat().st_size for f in tiny.iterdir())
    expected = ModelFolder(tiny, "tiny-llama", size, "llama", 256, "fp32")
    assert inspect(tiny) == expected
    assert inspect(tiny / "model.onnx") == expected


@pytest.mark.parametrize("name", ["genai_config.json", "model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named(tiny: Path, name: str) -> None:
    (tiny / name).unlink()
    assert f"“{name}” is missing" in refusal(tiny)


@pytest.mark.parametrize("content", ["[" * 100_000, "", "{", "[]", '{"model": 3}', "\x00\xff"])
def test_a_damaged_config(tiny: Path, content: str) -> None:
    (tiny / "genai_config.json").write_text(content, encoding="latin-1")
    assert "“genai_config.json” in “tiny-llama”" in refusal(tiny)


@pytest.mark.parametrize("content", [b"", b"not a graph at all", bytes(100)])
def test_a_damaged_graph(tiny: Path, content: bytes) -> None:
    (tiny / "model.onnx").write_bytes(content)
    assert "“model.onnx” in “tiny-llama” is damaged" in refusal(tiny)


@pytest.mark.parametrize("entries", [{}, {"location": "x", "offset": "many"}])
def test_a_graph_that_does_not_say_where_its_weights_are(
    tmp_path: Path, tiny: Path, entries: dict[str, str]
) -> None:
    graph = onnx.load(str(tiny / "model.onnx"))
    tensor = graph.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    (tiny / "model.onnx").write_bytes(graph.SerializeToString())
    assert "does not say where" in refusal(tiny)
    assert list_models(tiny.parent) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_links_to_folders_are_not_followed(tmp_path: Path, tiny: Path) -> None:
    size = inspect(tiny).size_bytes
    (tiny / "round").symlink_to(tiny)
    (tiny / "again").symlink_to(".")  # two of them: 2 ** 40 ways until the system refuses
    (tiny / "out").symlink_to("/")
    assert inspect(tiny).size_bytes == size
    exhaust(import_model(tiny, tmp_path / "models"))
    assert inspect(tmp_path / "models" / tiny.name).size_bytes == size


@pytest.mark.parametrize("name", ["../secret.onnx", "/etc/passwd"])
def test_a_config_cannot_point_outside(tiny: Path, name: str) -> None:
    path = tiny / "genai_config.json"
    config = json.loads(path.read_text())
    config["model"]["decoder"]["filename"] = name
    path.write_text(json.dumps(config))
    assert "outside of itself" in refusal(tiny)


def test_what_is_no_model(tmp_path: Path, tiny: Path) -> None:
    assert "“gone” is not there" in refusal(tmp_path / "gone")
    assert "is not there" in refusal(tmp_path / ("x" * 5000))
    (tmp_path / "empty").mkdir()
    assert "“genai_config.json” is missing" in refusal(tmp_path / "empty")


@pytest.mark.starter
def test_weights_beside_the_graph_must_be_whole(tmp_path: Path, starter_int8: Path) -> None:
    folder = tmp_path / "cut"
    folder.mkdir()
    for file in starter_int8.iterdir():
        if file.name != "model.onnx.data":
            shutil.copy(file, folder)
    assert "“model.onnx.data” is missing" in refusal(folder)
    with (folder / "model.onnx.data").open("wb") as data:
        data.truncate((starter_int8 / "model.onnx.data").stat().st_size - 1)
    assert "“model.onnx.data” in “cut” is cut" in refusal(folder)
    found = inspect(starter_int8)
    assert found.name == f"{STARTER_NAME}-int8"
    assert (found.type, found.context_length, found.precision) == ("llama", 8192, "int8")


def test_listing_takes_what_is_whole(tmp_path: Path, data_folder: Path) -> None:
    models = tmp_path / "models"
    assert list_models(models) == []
    for name in ("tiny-llama", "tiny-spm"):
        shutil.copytree(data_folder / name, models / name)
    shutil.copytree(data_folder / "tiny-llama", models / "broken")
    (models / "broken" / "model.onnx").unlink()
    shutil.copytree(data_folder / "tiny-llama", models / ".half.12345678.part")
    (models / "note.txt").write_text("hello")
    assert [m.name for m in list_models(models)] == ["tiny-llama", "tiny-spm"]


def test_a_folder_deleted_while_it_is_listed(
    tmp_path: Path, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = tmp_path / "models"
    for name in ("a", "b"):
        shutil.copytree(data_folder / "tiny-llama", models / name)
    plain = library.graph_facts

    def facts_then_delete(path: Path) -> Any:
        found = plain(path)
        shutil.rmtree(path.parent)
        return found

    monkeypatch.setattr(library, "graph_facts", facts_then_delete)
    assert list_models(models) == []
    assert list(models.iterdir()) == []


def test_a_folder_is_copied_in(tmp_path: Path, tiny: Path) -> None:
    models = tmp_path / "models"
    (tiny / ".cache").mkdir()
    (tiny / ".cache" / "lock").write_text("")
    for source, name in ((tiny, "tiny-llama"), (tiny / "model.onnx", "tiny-llama 2")):
        seen, path = exhaust(import_model(source, models))
        assert path == models / name
        assert seen[-1].done == seen[-1].total == inspect(tiny).size_bytes
        names = {p.name for p in tiny.iterdir() if p.name != ".cache"}
        assert {p.name for p in path.iterdir()} == names
        for file in path.iterdir():
            assert file.read_bytes() == (tiny / file.name).read_bytes()
    assert exhaust(import_model(models / "tiny-llama", models))[1] == models / "tiny-llama"
    assert len(list_models(models)) == 2


def test_a_copy_that_is_cancelled_leaves_nothing(tmp_path: Path, tiny: Path) -> None:
    models = tmp_path / "models"
    job = import_model(tiny, models)
    next(job)
    job.close()
    assert list(models.iterdir()) == []


@pytest.mark.parametrize(
    "content", [None, b"", b"PK\x03\x04zip", b"GGUF", b"GGUF\x03\x00\x00\x00" + b"\xff" * 64]
)
def test_files_that_are_no_models(tmp_path: Path, content: bytes | None) -> None:
    source, models = tmp_path / "thing.gguf", tmp_path / "models"
    models.mkdir()
    if content is not None:
        source.write_bytes(content)
    with pytest.raises(LibraryError, match=r"“thing\.gguf”.*\.$"):
        exhaust(import_model(source, models))
    assert list(models.iterdir()) == []


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "SmolLM2-135M-Instruct"),
        ("qwen2.5-0.5b-instruct-q4_k_m.gguf", "qwen2.5-0.5b-instruct"),
        ("Model-7B-UD-IQ4_XS.gguf", "Model-7B"),
        ("mistral.bf16.GGUF", "mistral"),
        ("con.gguf", "con model"),
        ("Ünï 模型.gguf", "Ünï 模型"),
        ("ggml-model-q4_0.gguf", "ggml-model"),  # a name that says nothing, and no file to ask
    ],
)
def test_names(tmp_path: Path, file: str, name: str) -> None:
    from app.convert import gguf_name

    assert gguf_name(tmp_path / file) == name


@pytest.mark.parametrize("letter", ["x", "é", "模", "🔥"])
def test_a_long_name_is_cut_to_what_disks_take(tmp_path: Path, letter: str) -> None:
    from app.convert import folder_name

    name = folder_name(letter * 300)
    assert set(name) == {letter}
    assert 190 < len(name.encode()) <= 200


@pytest.mark.starter
def test_the_starter_is_imported_under_its_name(tmp_path: Path, starter_gguf: Path) -> None:
    models = tmp_path / "Modèles 模型"
    seen, path = exhaust(import_model(starter_gguf, models))
    assert path == models / STARTER_NAME
    assert seen[-1].share == 1.0
    assert [m.name for m in list_models(models)] == [STARTER_NAME]
    nameless = tmp_path / "sha256-0123456789abcdef"
    os.symlink(starter_gguf, nameless)
    job = import_model(nameless, models, precision="fp32")
    next(job)
    next(job)
    (part,) = (p.name for p in models.iterdir() if p.name.startswith("."))
    assert part.startswith(".Smollm2 135M 8k Lc100K Mix1 Ep2-fp32.")  # the name inside the file
    job.close()
    assert [p.name for p in models.iterdir()] == [STARTER_NAME]


def test_what_a_killed_import_left_goes_when_nothing_was_written_for_an_hour(
    tmp_path: Path, tiny: Path
) -> None:
    models = tmp_path / "models"
    for name, file_age_s in ((".old.11111111.part", 4000), (".slow.22222222.part", 60)):
        (models / name).mkdir(parents=True)
        (models / name / "model.onnx.data").write_bytes(b"half")
        for path, age_s in ((models / name / "model.onnx.data", file_age_s), (models / name, 9e4)):
            os.utime(path, (time.time() - age_s,) * 2)
    exhaust(import_model(tiny, models))
    assert sorted(p.name for p in models.iterdir()) == [".slow.22222222.part", "tiny-llama"]
