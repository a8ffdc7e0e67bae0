"""How the formats of GGUF space their values: in each block they are step * q + minimum, q whole.

Read from the stored bytes as ggml lays them out (its ggml-common.h describes every block). Floats
have no grid.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gguf.constants import GGMLQuantizationType as Type
from gguf.quants import Q4_K
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Grid:
    """`read` takes stored blocks (count, bytes of a block) and gives steps and minima.

    They are (count, grids in a stored block) each; the minima are None where values lie around 0.
    """

    block: int  # values that share a step
    least: int  # of q
    most: int
    read: Callable[[Bytes], tuple[Floats, Floats | None]]

    @property
    def has_minimum(self) -> bool:
        return self.least == 0

    @property
    def bits(self) -> int:
        return 4 if self.most - self.least < 16 else 8


def _half(blocks: Bytes, at: int) -> Floats:
    """The float16 at a byte of each block: (count, 1)."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(np.float32)


def _one_step(blocks: Bytes) -> tuple[Floats, None]:
    return _half(blocks, 0), None


def _step_and_minimum(blocks: Bytes) -> tuple[Floats, Floats]:
    return _half(blocks, 0), _half(blocks, 2)


def _q2_k(blocks: Bytes) -> tuple[Floats, Floats]:
    scales = blocks[:, :16]
    return (
        _half(blocks, 80) * (scales & 15).astype(np.float32),
        -_half(blocks, 82) * (scales >> 4).astype(np.float32),
    )


def _q3_k(blocks: Bytes) -> tuple[Floats, None]:
    """Sixteen scales of six bits: the low four in eight bytes, the high two in four."""
    low = (blocks[:, None, 96:104] >> np.array([0, 4], np.uint8)[:, None]).reshape(-1, 16) & 15
    high = (blocks[:, None, 104:108] >> np.array([0, 2, 4, 6], np.uint8)[:, None]) & 3
    scales = (low | high.reshape(-1, 16) << 4).astype(np.float32) - 32
    return _half(blocks, 108) * scales, None


def _q4_or_q5_k(blocks: Bytes) -> tuple[Floats, Floats]:
    scales, minima = Q4_K.get_scale_min(blocks[:, 4:16])
    return (
        _half(blocks, 0) * scales.reshape(-1, 8).astype(np.float32),
        -_half(blocks, 2) * minima.reshape(-1, 8).astype(np.float32),
    )


def _q6_k(blocks: Bytes) -> tuple[Floats, None]:
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8)
    return _half(blocks, 208) * scales.astype(np.float32), None


def _iq4_xs(blocks: Bytes) -> tuple[Floats, None]:
    """Eight scales of six bits: the high two in a number of 16 bits, the low four in four bytes."""
    places = np.arange(0, 16, 2).astype(np.uint16)
    high = np.ascontiguousarray(blocks[:, 2:4]).view("<u2") >> places & 3
    low = (blocks[:, 4:8, None] >> np.array([0, 4], np.uint8)).reshape(-1, 8) & 15
    scales = (low | high << 4).astype(np.float32) - 32
    return _half(blocks, 0) * scales, None


def _mxfp4(blocks: Bytes) -> tuple[Floats, None]:
    """A power of two; q counts halves of what the four bits mean (OCP Microscaling Formats 1.0)."""
    return np.ldexp(np.float32(1), blocks[:, :1].astype(np.int32) - 128), None


GRIDS = {
    Type.Q4_0: Grid(32, -8, 7, _one_step),
    Type.Q4_1: Grid(32, 0, 15, _step_and_minimum),
    Type.Q5_0: Grid(32, -16, 15, _one_step),
    Type.Q5_1: Grid(32, 0, 31, _step_and_minimum),
    Type.Q8_0: Grid(32, -128, 127, _one_step),
    Type.Q2_K: Grid(16, 0, 3, _q2_k),
    Type.Q3_K: Grid(16, -4, 3, _q3_k),
    Type.Q4_K: Grid(32, 0, 15, _q4_or_q5_k),
    Type.Q5_K: Grid(32, 0, 31, _q4_or_q5_k),
    Type.Q6_K: Grid(16, -32, 31, _q6_k),
    Type.IQ4_NL: Grid(32, -127, 113, _one_step),
    Type.IQ4_XS: Grid(32, -127, 113, _iq4_xs),
    Type.MXFP4: Grid(32, -12, 12, _mxfp4),
}
