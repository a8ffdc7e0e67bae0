"""The header is believed only as far as the file reaches."""

import struct
import time
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest

from app.convert import ConvertError
from app.convert.gguf_file import GgufFile


def test_it_reads_what_the_gguf_package_reads(
    tmp_path: Path, make_gguf: Callable[..., Path]
) -> None:
    path = make_gguf(tmp_path / "tiny.gguf", type="Q4_1", biases=True)
    theirs = gguf.GGUFReader(path)
    with GgufFile(path) as ours:
        for key, field in theirs.fields.items():
            if not key.startswith("GGUF."):
                found = ours.metadata[key]
                assert list(np.atleast_1d(found)) == list(np.atleast_1d(field.contents())), key
        assert set(ours.tensors) == {t.name for t in theirs.tensors}
        for tensor in theirs.tensors:
            expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            np.testing.assert_array_equal(ours.values(ours.tensor(tensor.name)), expected)


def test_rows_come_in_the_order_asked_for(tmp_path: Path, make_gguf: Callable[..., Path]) -> None:
    path = make_gguf(tmp_path / "tiny.gguf", type="Q8_0")
    with GgufFile(path) as file:
        tensor = file.tensor("blk.0.attn_q.weight")
        order = np.array([7, 0, 255, 7])
        np.testing.assert_array_equal(file.rows(tensor, order), file.values(tensor)[order])


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def header(tensors: int, values: int) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, values)


HUGE = 2**63
TENSOR = struct.pack("<I", 2) + struct.pack("<QQ", HUGE, HUGE) + struct.pack("<IQ", 0, 0)
HOSTILE = {
    "count of values": header(0, HUGE),
    "count of tensors": header(HUGE, 0),
    "length of a key": header(0, 1) + struct.pack("<Q", HUGE),
    "length of a list of numbers": header(0, 1) + text("k") + struct.pack("<IIQ", 9, 4, HUGE),
    "length of a list of texts": header(0, 1) + text("k") + struct.pack("<IIQ", 9, 8, HUGE),
    "lists of lists": header(0, 1) + text("k") + struct.pack("<I", 9)
    + struct.pack("<IQ", 9, 1) * 20000,
    "unknown kind": header(0, 1) + text("k") + struct.pack("<I", 99),
    "unknown kind in a list": header(0, 1) + text("k") + struct.pack("<IIQ", 9, 99, 1),
    "shape": header(1, 0) + text("t") + TENSOR,
    "dimensions": header(1, 0) + text("t") + struct.pack("<I", 2**31),
    "tensor type": header(1, 0) + text("t") + struct.pack("<IQIQ", 1, 32, 12345, 0),
    "tensor offset": header(1, 0) + text("t") + struct.pack("<IQIQ", 1, 32, 0, HUGE),
    "row length": header(1, 0) + text("t") + struct.pack("<IQIQ", 1, 33, 2, 0),
}  # fmt: skip


@pytest.mark.parametrize("what", sorted(HOSTILE))
def test_hostile_numbers_are_refused_at_once(tmp_path: Path, what: str) -> None:
    path = tmp_path / "hostile.gguf"
    path.write_bytes(HOSTILE[what] + bytes(256))
    begun = time.process_time()
    with pytest.raises(ConvertError, match=r"hostile\.gguf” is (cut or )?damaged"):
        GgufFile(path)
    assert time.process_time() - begun < 20  # not a speed: without the checks it never ends
