"""An imported folder computes what the file says, and an import that fails leaves nothing."""

import errno
import json
import struct
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import gguf
import numpy as np
import onnx
import pytest
from gguf.constants import GGMLQuantizationType

from app import engine as og
from app.convert import ConvertError, Progress, folder, gguf_file, import_gguf

IDS = [5, 77, 260, 3, 3, 141, 265, 90, 1, 200, 33]
FILES = {
    "genai_config.json", "import.json", "model.onnx", "model.onnx.data", "tokenizer.json",
    "tokenizer_config.json",
}  # fmt: skip
Make = Callable[..., Path]
Logits = Callable[..., np.ndarray]


def run(source: Path, destination: Path, precision: str = "int8") -> list[Progress]:
    return list(import_gguf(source, destination, precision=precision))


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.sqrt(((found - expected) ** 2).mean() / (expected**2).mean()))


# ---- it computes the same


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("biases", [False, True])
def test_fp32_is_the_model_in_the_file(
    tmp_path: Path, make_gguf: Make, reference_logits: Logits, folder_logits: Logits,
    tied: bool, biases: bool,
) -> None:  # fmt: skip
    source = make_gguf(tmp_path / "tiny.gguf", tied=tied, biases=biases)
    run(source, tmp_path / "out", "fp32")
    expected = reference_logits(source, IDS)
    assert relative_error(folder_logits(tmp_path / "out", IDS), expected) < 1e-5


@pytest.mark.parametrize("type", ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"])
def test_every_simple_source_type(
    tmp_path: Path, make_gguf: Make, reference_logits: Logits, folder_logits: Logits, type: str
) -> None:
    source = make_gguf(tmp_path / "tiny.gguf", type=type)
    expected = reference_logits(source, IDS)
    for precision, bound in (("fp32", 1e-5), ("stored", 0.02), ("int8", 0.02), ("int4", 0.3)):
        run(source, tmp_path / precision, precision)
        error = relative_error(folder_logits(tmp_path / precision, IDS), expected)
        assert error < bound, precision


@pytest.mark.peer
@pytest.mark.parametrize("type", ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"])
def test_types_that_llama_cpp_writes(
    tmp_path: Path, make_gguf: Make, reference_logits: Logits, folder_logits: Logits,
    llama_cpp: ModuleType, row_bytes: Callable[..., int], type: str,
) -> None:  # fmt: skip
    """The file is written by llama.cpp's quantiser, and llama.cpp gives the logits to compare."""

    def encode(values: np.ndarray, kind: GGMLQuantizationType) -> np.ndarray:
        return llama_cpp.quantized(values, kind, row_bytes(values.shape[1], kind))

    source = make_gguf(tmp_path / "tiny.gguf", type=type, encode=encode)
    run(source, tmp_path / "fp32", "fp32")
    run(source, tmp_path / "int8", "int8")
    found = folder_logits(tmp_path / "fp32", IDS)
    assert relative_error(found, reference_logits(source, IDS)) < 1e-5
    peer = llama_cpp.LlamaCpp(source, context=64)
    theirs = peer.logits(IDS)
    peer.close()
    assert relative_error(found, theirs) < 0.02  # llama.cpp rounds the activations to 8 bits
    assert relative_error(folder_logits(tmp_path / "int8", IDS), theirs) < 0.03
    run(source, tmp_path / "stored", "stored")
    facts = json.loads((tmp_path / "stored" / "import.json").read_text("utf-8"))
    assert facts["rounding_error"] == 0
    assert relative_error(folder_logits(tmp_path / "stored", IDS), found) < 0.02


def test_rotation_factors_and_linear_scaling(
    tmp_path: Path, make_gguf: Make, reference_logits: Logits, folder_logits: Logits
) -> None:
    factors = make_gguf(tmp_path / "factors.gguf", rope_factors=True)
    run(factors, tmp_path / "factors", "fp32")
    found = folder_logits(tmp_path / "factors", IDS)
    assert relative_error(found, reference_logits(factors, IDS)) < 1e-5
    scaling = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    scaled = make_gguf(tmp_path / "scaled.gguf", facts=scaling)
    run(scaled, tmp_path / "scaled", "fp32")
    expected = reference_logits(scaled, IDS, rope_scale=4.0)
    assert relative_error(folder_logits(tmp_path / "scaled", IDS), expected) < 1e-5


def test_token_by_token_in_one_shared_buffer_is_the_same(
    tmp_path: Path, make_gguf: Make, folder_logits: Logits, open_session: Callable[[Path], Any]
) -> None:
    import onnxruntime

    run(make_gguf(tmp_path / "tiny.gguf"), tmp_path / "out", "fp32")
    session = open_session(tmp_path / "out")
    ports = [p for p in session.get_inputs() if p.name.startswith("past_key_values")]
    cache = {
        p.name: onnxruntime.OrtValue.ortvalue_from_numpy(
            np.zeros((1, p.shape[1], 32, p.shape[3]), np.float32)
        )
        for p in ports
    }
    rows = []
    for i, token in enumerate(IDS):
        binding = session.io_binding()
        binding.bind_cpu_input("input_ids", np.array([[token]], np.int64))
        binding.bind_cpu_input("attention_mask", np.ones((1, i + 1), np.int64))
        binding.bind_output("logits")
        for name, value in cache.items():
            binding.bind_ortvalue_input(name, value)
            binding.bind_ortvalue_output(name.replace("past_key_values", "present"), value)
        session.run_with_iobinding(binding)
        rows.append(binding.get_outputs()[0].numpy()[0, 0])
    assert relative_error(np.array(rows), folder_logits(tmp_path / "out", IDS, session)) < 1e-5


def split(make_gguf: Make, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The parts of a model, as the gguf package splits one."""
    folder.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(gguf, "GGUFWriter", partial(gguf.GGUFWriter, split_max_tensors=7))
        make_gguf(folder / "tiny.gguf", type="Q4_1", tied=False)
    return sorted(folder.glob("*.gguf"))


def test_a_model_in_parts_is_one_model(
    tmp_path: Path, make_gguf: Make, folder_logits: Logits, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = split(make_gguf, tmp_path / "parts", monkeypatch)
    assert len(parts) > 2
    assert parts[0].name.startswith("tiny-00001-of-0000")
    run(make_gguf(tmp_path / "whole.gguf", type="Q4_1", tied=False), tmp_path / "whole")
    expected = folder_logits(tmp_path / "whole", IDS)
    for number in (0, 2):  # any part will do
        run(parts[number], tmp_path / f"from-{number}")
        found = folder_logits(tmp_path / f"from-{number}", IDS)
        np.testing.assert_array_equal(found, expected)
    data = (tmp_path / "from-0" / "model.onnx.data").read_bytes()
    assert data == (tmp_path / "whole" / "model.onnx.data").read_bytes()


def test_parts_that_do_not_belong_together(
    tmp_path: Path, make_gguf: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = split(make_gguf, tmp_path / "parts", monkeypatch)
    whole = parts[1].read_bytes()
    parts[1].unlink()
    with pytest.raises(ConvertError, match=parts[1].name):
        run(parts[0], tmp_path / "out")
    parts[1].write_bytes(parts[2].read_bytes())
    with pytest.raises(ConvertError, match="part 3 of"):
        run(parts[0], tmp_path / "out")
    parts[1].write_bytes(whole[:-5])
    with pytest.raises(ConvertError, match=f"{parts[1].name}.*cut"):
        run(parts[0], tmp_path / "out")
    alone = tmp_path / "alone.gguf"
    alone.write_bytes(whole)
    with pytest.raises(ConvertError, match="part 2 of"):
        run(alone, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---- what lies in the folder


def test_a_tied_embedding_is_stored_once(tmp_path: Path, make_gguf: Make) -> None:
    sizes = {}
    for tied in (True, False):
        for precision in ("int8", "fp32"):
            source = make_gguf(tmp_path / f"{tied}.gguf", tied=tied)
            out = tmp_path / f"{tied}-{precision}"
            run(source, out, precision)
            assert {p.name for p in out.iterdir()} == FILES
            sizes[tied, precision] = (out / "model.onnx.data").stat().st_size
    weights = (3 + 256 + 12) * 256
    assert sizes[False, "fp32"] - sizes[True, "fp32"] == pytest.approx(weights * 4, abs=8192)
    assert sizes[False, "int8"] - sizes[True, "int8"] == pytest.approx(weights * 1.125, abs=8192)


def test_the_graph_is_made_of_the_operators_that_runtimes_know(
    tmp_path: Path, make_gguf: Make
) -> None:
    run(make_gguf(tmp_path / "tiny.gguf"), tmp_path / "out")
    model = onnx.load(str(tmp_path / "out" / "model.onnx"), load_external_data=False)
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("GroupQueryAttention") == 2
    assert kinds.count("MatMulNBits") == 2 * 4 + 1  # qkv, o, gate/up, down; the output
    assert kinds.count("SimplifiedLayerNormalization") == 1
    assert kinds.count("SkipSimplifiedLayerNormalization") == 4
    assert kinds.count("GatherBlockQuantized") == 1
    assert list(model.graph.node)[-1].output == ["logits"]
    names = [node.name for node in model.graph.node]
    assert len(names) == len(set(names))


def test_the_config_says_what_the_file_says(tmp_path: Path, make_gguf: Make) -> None:
    run(make_gguf(tmp_path / "tiny.gguf"), tmp_path / "out")
    config = json.loads((tmp_path / "out" / "genai_config.json").read_text("utf-8"))
    model, search = config["model"], config["search"]
    assert model["type"] == "llama"
    assert model["context_length"] == search["max_length"] == 64
    assert model["eos_token_id"] == [0, 2]  # the named end, and the end of a turn
    assert model["vocab_size"] == 271
    decoder = model["decoder"]
    assert (decoder["num_attention_heads"], decoder["num_key_value_heads"]) == (4, 2)
    assert (decoder["head_size"], decoder["hidden_size"], decoder["num_hidden_layers"]) == (
        64, 256, 2,
    )  # fmt: skip
    assert search["past_present_share_buffer"] is True
    assert search["do_sample"] is True


def test_advice_on_sampling_in_the_file_is_taken(tmp_path: Path, make_gguf: Make) -> None:
    facts = {"general.sampling.temp": 0.25, "general.sampling.top_k": 7}
    run(make_gguf(tmp_path / "tiny.gguf", facts=facts), tmp_path / "out")
    search = json.loads((tmp_path / "out" / "genai_config.json").read_text("utf-8"))["search"]
    assert (search["temperature"], search["top_k"], search["top_p"]) == (0.25, 7, 0.9)


@pytest.mark.peer
def test_the_peer_loads_the_folder_and_agrees(
    tmp_path: Path, make_gguf: Make, folder_logits: Logits
) -> None:
    og = pytest.importorskip("onnxruntime_genai", reason="the peer is missing")
    run(make_gguf(tmp_path / "tiny.gguf"), tmp_path / "out", "fp32")
    model = og.Model(str(tmp_path / "out"))
    params = og.GeneratorParams(model)
    params.set_search_options(do_sample=False, max_length=48, repetition_penalty=1.0)
    generator = og.Generator(model, params)
    generator.append_tokens(np.array(IDS, np.int32))
    theirs = list(IDS)
    while not generator.is_done() and len(theirs) < 40:
        generator.generate_next_token()
        theirs.append(int(generator.get_next_tokens()[0]))
    ours = list(IDS)
    while len(ours) < len(theirs):
        ours.append(int(folder_logits(tmp_path / "out", ours)[-1].argmax()))
    assert ours == theirs
    text = "the 12 in\n\n  the <|im_end|>"
    tokenizer = og.Tokenizer(model)
    assert tokenizer.decode(tokenizer.encode(text)).replace("<|im_end|>", "") in (
        text, text.replace("<|im_end|>", ""),
    )  # fmt: skip


# ---- how it goes


def test_progress_counts_bytes_up_to_the_end(tmp_path: Path, make_gguf: Make) -> None:
    source = make_gguf(tmp_path / "tiny.gguf")
    seen = run(source, tmp_path / "out")
    done = [p.done for p in seen]
    assert done == sorted(done)
    assert seen[-1].done == seen[-1].total
    assert 0.9 < seen[-1].total / source.stat().st_size <= 1
    assert all(source.name in p.text for p in seen)


@pytest.mark.parametrize("step", [0, 1, 2, 5, 9])
def test_closing_the_generator_leaves_nothing(tmp_path: Path, make_gguf: Make, step: int) -> None:
    source = make_gguf(tmp_path / "tiny.gguf")
    library = tmp_path / "library"
    library.mkdir()
    job = import_gguf(source, library / "out")
    for _ in range(step + 1):
        next(job)
    job.close()
    assert list(library.iterdir()) == []
    assert run(source, library / "out")[-1].share == 1.0  # and the way is free again


def test_any_name_will_do(tmp_path: Path, make_gguf: Make) -> None:
    source = make_gguf(tmp_path / "tiny.gguf").rename(tmp_path / "Модель 模型 ü.gguf")
    out = tmp_path / "Bücher und 本 🦊" / "Модель"
    run(source, out)
    assert {p.name for p in out.iterdir()} == FILES


def test_an_existing_destination_is_not_touched(tmp_path: Path, make_gguf: Make) -> None:
    source = make_gguf(tmp_path / "tiny.gguf")
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("keep")
    with pytest.raises(ConvertError, match="“out” is there already"):
        run(source, out)
    assert [p.name for p in out.iterdir()] == ["mine.txt"]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.starter
def test_memory_stays_below_the_largest_tensor(tmp_path: Path, starter_gguf: Path) -> None:
    """49152 x 576 values of four bytes; the whole model would be five times that."""
    tracemalloc.start()
    try:
        run(starter_gguf, tmp_path / "out", "int8")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 49152 * 576 * 4


# ---- what it refuses


def refusal(source: Path, destination: Path) -> str:
    library = set(destination.parent.iterdir())
    with pytest.raises(ConvertError) as caught:
        run(source, destination)
    text = str(caught.value)
    assert text.endswith((".", ").")), text
    assert "\n" not in text
    assert "Traceback" not in text
    assert set(destination.parent.iterdir()) == library
    return text


def test_missing_foreign_and_empty_files(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "“none.gguf” is not there" in refusal(tmp_path / "none.gguf", out)
    (tmp_path / "empty.gguf").write_bytes(b"")
    assert "not a GGUF file" in refusal(tmp_path / "empty.gguf", out)
    (tmp_path / "photo.gguf").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(1000))
    assert "not a GGUF file" in refusal(tmp_path / "photo.gguf", out)
    (tmp_path / "folder.gguf").mkdir()
    assert "is a folder" in refusal(tmp_path / "folder.gguf", out)
    (tmp_path / "old.gguf").write_bytes(b"GGUF\x01\x00\x00\x00" + bytes(64))
    assert "version 1" in refusal(tmp_path / "old.gguf", out)


def test_a_file_cut_anywhere(tmp_path: Path, make_gguf: Make) -> None:
    whole = make_gguf(tmp_path / "tiny.gguf").read_bytes()
    seed = int(np.random.SeedSequence().entropy) % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    cut = tmp_path / "cut.gguf"
    header = whole.index(b"output_norm.weight")
    for size in [*rng.integers(4, header, 40), *rng.integers(header, len(whole) - 64, 10)]:
        cut.write_bytes(whole[: int(size)])
        assert "“cut.gguf” is" in refusal(cut, tmp_path / "out")


def test_damaged_bytes_never_give_a_traceback(tmp_path: Path, make_gguf: Make) -> None:
    whole = make_gguf(tmp_path / "tiny.gguf").read_bytes()
    seed = int(np.random.SeedSequence().entropy) % 2**32
    print("seed", seed)
    rng = np.random.default_rng(seed)
    header = whole.index(b"output_norm.weight")
    damaged = tmp_path / "damaged.gguf"
    for i in range(60):
        data = bytearray(whole)
        at = int(rng.integers(4, header))
        data[at : at + 8] = rng.integers(0, 256, 8, np.uint8).tobytes() if i % 2 else b"\xff" * 8
        damaged.write_bytes(data)
        with suppress(ConvertError):  # or nothing: some damage cannot be seen, as in a word
            run(damaged, tmp_path / f"out{i}")
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"facts": {"general.architecture": "mamba"}}, "family “mamba”"),
        ({"facts": {"llama.expert_count": 8}}, "mixture of experts"),
        ({"facts": {"llama.rope.scaling.type": "odd"}}, "“odd” position scaling"),
        ({"facts": {"split.count": 3}}, "part 1 of 3"),
        ({"without": ("blk.1.ffn_up.weight",)}, "“blk.1.ffn_up.weight”"),
        ({"without": ("token_embd.weight",)}, "“token_embd.weight”"),
        ({"facts": {"llama.attention.value_length": 32}}, "keys and values differ"),
        ({"vocabulary": "no-such-kind"}, "“no-such-kind”"),
    ],
)
def test_models_that_it_does_not_know(
    tmp_path: Path, make_gguf: Make, options: dict[str, Any], words: str
) -> None:
    source = make_gguf(tmp_path / "tiny.gguf", **options)
    assert words in refusal(source, tmp_path / "out")


def test_sizes_that_do_not_fit_together(tmp_path: Path, make_gguf: Make) -> None:
    source = make_gguf(tmp_path / "tiny.gguf")
    reader = gguf.GGUFReader(source, "r+")
    reader.fields["llama.feed_forward_length"].parts[-1][0] = 128
    reader.data.flush()
    assert "where 128 x 256 is due" in refusal(source, tmp_path / "out")


WRONG_KINDS: list[Any] = [
    -1, 0, 2**31, 2**63, float("nan"), float("inf"), -1.5, True, "", "x", [1, 2], [], ["a", "b"],
    [[7]], [float("nan")],
]  # fmt: skip
FACTS = [
    "general.architecture", "general.alignment", "split.count", "tokenizer.chat_template",
    *(f"general.sampling.{name}" for name in ("temp", "top_p", "top_k", "penalty_repeat")),
    *(f"llama.{name}" for name in (
        "context_length", "embedding_length", "block_count", "feed_forward_length", "expert_count",
        "attention.head_count", "attention.head_count_kv", "attention.key_length",
        "attention.value_length", "attention.layer_norm_rms_epsilon", "rope.dimension_count",
        "rope.freq_base", "rope.scaling.type",
    )),
    *(f"tokenizer.ggml.{name}" for name in (
        "model", "pre", "tokens", "token_type", "scores", "merges", "bos_token_id", "eos_token_id",
        "padding_token_id", "add_bos_token", "add_space_prefix",
    )),
]  # fmt: skip


@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_of_the_wrong_kind_is_refused_or_harmless(
    tmp_path: Path, make_gguf: Make, fact: str
) -> None:
    """Nothing but ConvertError, and a folder that is made can be opened and run."""
    source = make_gguf(tmp_path / "tiny.gguf")
    for number, value in enumerate(WRONG_KINDS):
        changed = tmp_path / "changed.gguf"
        changed.write_bytes(_with_fact(source.read_bytes(), fact, value))
        made = tmp_path / f"made{number}"
        try:
            run(changed, made)
        except ConvertError:
            continue
        model = og.Model(made)
        og.Tokenizer(model)
        params = og.GeneratorParams(model)
        generator = og.Generator(model, params)
        generator.append_tokens([5])
        generator.close()
        model.close()
    assert not list(tmp_path.glob(".*"))


def _with_fact(whole: bytes, key: str, value: Any) -> bytes:
    """The file with one fact replaced or added, of whatever kind the value is."""
    tensors, count = struct.unpack("<QQ", whole[8:24])
    cursor = gguf_file._Cursor(whole)  # type: ignore[arg-type]
    cursor.at = 24
    facts = b""
    for _ in range(count):
        start = cursor.at
        if gguf_file._key_value(cursor)[0] == key:
            count -= 1
        else:
            facts += whole[start : cursor.at]
    start = cursor.at
    for _ in range(tensors):
        gguf_file._tensor_fields(cursor)
    described, weights = whole[start : cursor.at], whole[-(-cursor.at // 32) * 32 :]
    facts += _packed_text(key) + _packed(value)
    head = b"GGUF" + struct.pack("<IQQ", 3, tensors, count + 1) + facts + described
    return head + bytes(-len(head) % 32) + weights


def _packed_text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _packed(value: Any) -> bytes:
    """Kind and value."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<Iq", 11, value) if value < 2**63 else struct.pack("<IQ", 10, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _packed_text(value)
    packed = [_packed(item) for item in value] or [_packed(0)]
    kind, items = packed[0][:4], b"".join(item[4:] for item in packed if value)
    return struct.pack("<I", 9) + kind + struct.pack("<Q", len(value)) + items


@pytest.mark.filterwarnings("error")
def test_weights_that_are_no_numbers_are_refused(tmp_path: Path, make_gguf: Make) -> None:
    def encode(values: np.ndarray, kind: GGMLQuantizationType) -> np.ndarray:
        blocks = gguf.quants.quantize(values, kind)
        blocks[0, :2] = 255  # the first block's scale
        return blocks

    source = make_gguf(tmp_path / "tiny.gguf", type="Q8_0", encode=encode)
    assert "no numbers" in refusal(source, tmp_path / "out")


class FullDisk:
    """Behaves as a file on a disk with so many bytes left."""

    def __init__(self, file: Any, room: list[int]) -> None:
        self.file, self.room = file, room

    def write(self, data: Any) -> int:
        self.room[0] -= len(data) if isinstance(data, str) else memoryview(data).nbytes
        if self.room[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return int(self.file.write(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> "FullDisk":
        return self

    def __exit__(self, *exception: object) -> None:
        self.file.close()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.97, 0.999])
def test_a_disk_that_fills_up(
    tmp_path: Path, make_gguf: Make, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    source = make_gguf(tmp_path / "tiny.gguf")
    left = [1 << 40]
    plain = Path.open

    def opened(self: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        file = plain(self, mode, *rest, **more)
        return FullDisk(file, left) if "w" in mode else file

    monkeypatch.setattr(Path, "open", opened)
    run(source, tmp_path / "whole")
    left[0] = int(share * ((1 << 40) - left[0]))
    assert "The disk is full" in refusal(source, tmp_path / "out")


def test_a_disk_that_is_too_full_is_refused_at_once(
    tmp_path: Path, make_gguf: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_gguf(tmp_path / "tiny.gguf")
    usage = type("Usage", (), {"free": 1_000_000})
    monkeypatch.setattr(folder.shutil, "disk_usage", lambda path: usage)
    assert "The disk is too full: " in refusal(source, tmp_path / "out")
