"""llama.cpp as an oracle: token ids and logits through the C functions that xllamacpp exports.

xllamacpp's Python interface is a server and shows no logits, so its library is called with
ctypes. Parameter structs are passed as blocks of bytes, larger than any version's: only the first
three numbers (context, batch, micro-batch) are set, and read back to see that they arrived.
"""

import ctypes
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int8, c_int32, c_uint32, c_void_p
from pathlib import Path

import numpy as np
import xllamacpp


class _Parameters(ctypes.Structure):
    _fields_ = [("numbers", c_uint32 * 256)]


class _Batch(ctypes.Structure):
    _fields_ = [
        ("count", c_int32),
        ("tokens", POINTER(c_int32)),
        ("embeddings", c_void_p),
        ("positions", POINTER(c_int32)),
        ("sequence_counts", POINTER(c_int32)),
        ("sequences", POINTER(POINTER(c_int32))),
        ("wants_logits", POINTER(c_int8)),
    ]


_SIGNATURES = {
    "llama_backend_init": (None, []),
    "llama_model_default_params": (_Parameters, []),
    "llama_context_default_params": (_Parameters, []),
    "llama_model_load_from_file": (c_void_p, [c_char_p, _Parameters]),
    "llama_model_free": (None, [c_void_p]),
    "llama_model_get_vocab": (c_void_p, [c_void_p]),
    "llama_vocab_n_tokens": (c_int32, [c_void_p]),
    "llama_vocab_is_eog": (c_bool, [c_void_p, c_int32]),
    "llama_init_from_model": (c_void_p, [c_void_p, _Parameters]),
    "llama_free": (None, [c_void_p]),
    "llama_n_ctx": (c_uint32, [c_void_p]),
    "llama_n_batch": (c_uint32, [c_void_p]),
    "llama_n_ubatch": (c_uint32, [c_void_p]),
    "llama_n_threads": (c_int32, [c_void_p]),
    "llama_set_n_threads": (None, [c_void_p, c_int32, c_int32]),
    "llama_get_memory": (c_void_p, [c_void_p]),
    "llama_memory_clear": (None, [c_void_p, c_bool]),
    "llama_batch_init": (_Batch, [c_int32, c_int32, c_int32]),
    "llama_batch_free": (None, [_Batch]),
    "llama_decode": (c_int32, [c_void_p, _Batch]),
    "llama_get_logits": (POINTER(c_float), [c_void_p]),
    "llama_tokenize": (
        c_int32,
        [c_void_p, c_char_p, c_int32, POINTER(c_int32), c_int32, c_bool, c_bool],
    ),
    "llama_log_set": (None, [c_void_p, c_void_p]),
    "ggml_quantize_chunk": (
        ctypes.c_size_t,
        [c_int32, c_void_p, c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, c_void_p],
    ),
}
_quiet = ctypes.CFUNCTYPE(None, c_int32, c_char_p, c_void_p)(lambda *_: None)


def load_library() -> ctypes.CDLL:
    """Raises AttributeError or OSError where this build does not export the C functions."""
    (path,) = [p for p in Path(xllamacpp.__file__).parent.iterdir() if p.suffix in (".so", ".pyd")]
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    library.llama_log_set(_quiet, None)
    library.llama_backend_init()
    return library


class LlamaCpp:
    """One GGUF file in llama.cpp. Every call of `logits` starts at position `at`."""

    def __init__(self, path: Path, *, context: int = 512, threads: int = 2) -> None:
        self.library = load_library()
        parameters = self.library.llama_model_default_params()
        self.model = self.library.llama_model_load_from_file(str(path).encode(), parameters)
        assert self.model, f"llama.cpp could not load {path}"
        self.vocabulary = self.library.llama_model_get_vocab(self.model)
        self.size = self.library.llama_vocab_n_tokens(self.vocabulary)
        parameters = self.library.llama_context_default_params()
        for i in range(3):
            parameters.numbers[i] = context
        self.context = self.library.llama_init_from_model(self.model, parameters)
        assert self.context, f"llama.cpp could not make a context for {path}"
        assert self.library.llama_n_batch(self.context) == context
        assert self.library.llama_n_ubatch(self.context) == context
        self.library.llama_set_n_threads(self.context, threads, threads)
        assert self.library.llama_n_threads(self.context) == threads
        self.batch = self.library.llama_batch_init(context, 0, 1)

    def close(self) -> None:
        self.library.llama_batch_free(self.batch)
        self.library.llama_free(self.context)
        self.library.llama_model_free(self.model)

    def tokens(self, text: str, *, add_special: bool = False, special: bool = True) -> list[int]:
        data = text.encode()
        room = (c_int32 * (len(data) + 8))()
        count = self.library.llama_tokenize(
            self.vocabulary, data, len(data), room, len(room), add_special, special
        )
        assert count >= 0
        return list(room[:count])

    def ends(self) -> set[int]:
        return {i for i in range(self.size) if self.library.llama_vocab_is_eog(self.vocabulary, i)}

    def clear(self) -> None:
        self.library.llama_memory_clear(self.library.llama_get_memory(self.context), True)

    def logits(self, ids: list[int], *, at: int = 0, only_last: bool = False) -> np.ndarray:
        """(ids, vocabulary) of a run, or (1, vocabulary); position 0 forgets what was before."""
        if at == 0:
            self.clear()
        batch = self.batch
        batch.count = len(ids)
        for i, token in enumerate(ids):
            batch.tokens[i], batch.positions[i] = token, at + i
            batch.sequence_counts[i], batch.sequences[i][0] = 1, 0
            batch.wants_logits[i] = not only_last or i == len(ids) - 1
        assert self.library.llama_decode(self.context, batch) == 0
        rows = 1 if only_last else len(ids)
        return np.ctypeslib.as_array(
            self.library.llama_get_logits(self.context), (rows, self.size)
        ).copy()


def quantized(values: np.ndarray, type: int, row_bytes: int) -> np.ndarray:
    """float32 rows in a GGML type, by llama.cpp's own quantiser: (rows, row_bytes) uint8."""
    values = np.ascontiguousarray(values, np.float32)
    rows, length = values.shape
    out = np.zeros((rows, row_bytes), np.uint8)
    load_library().ggml_quantize_chunk(
        int(type), values.ctypes.data, out.ctypes.data, 0, rows, length, None
    )
    return out
