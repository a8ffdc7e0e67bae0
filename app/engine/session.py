"""One InferenceSession: opened with our defaults, run by I/O binding, its errors put into words.

Knows tensors and devices, not tokens. Every tensor that stays between runs is made by `tensor`
and lies on the session's own device.
"""

import ctypes
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as native

from app.engine import devices, graph
from app.engine.config import Provider
from app.engine.errors import EngineError, ModelError, OutOfMemoryError, Stopped
from app.engine.session_options import native_options
from app.engine.stop import Stop

log = logging.getLogger(__name__)

Array = NDArray[Any]

FLOAT, FLOAT16, BFLOAT16, INT32, INT64 = 1, 10, 16, 6, 7  # onnx.TensorProto.DataType
_ELEMENT_TYPES = {
    "tensor(float)": FLOAT, "tensor(uint8)": 2, "tensor(int8)": 3, "tensor(uint16)": 4,
    "tensor(int16)": 5, "tensor(int32)": INT32, "tensor(int64)": INT64, "tensor(bool)": 9,
    "tensor(float16)": FLOAT16, "tensor(double)": 11, "tensor(uint32)": 12,
    "tensor(uint64)": 13, "tensor(bfloat16)": BFLOAT16,
}  # fmt: skip
_NUMPY_TYPES: dict[int, type[np.generic]] = {
    FLOAT: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, INT32: np.int32,
    INT64: np.int64, 9: np.bool_, FLOAT16: np.float16, 11: np.float64, 12: np.uint32,
    13: np.uint64, BFLOAT16: np.uint16,
}  # fmt: skip

_NATIVE_ERRORS: tuple[type[BaseException], ...] = tuple(
    getattr(native, name)
    for name in (
        "Fail", "InvalidArgument", "NoSuchFile", "NoModel", "EngineError", "RuntimeException",
        "InvalidProtobuf", "ModelLoaded", "NotImplemented", "InvalidGraph", "EPFail",
    )
    if hasattr(native, name)
)  # fmt: skip
RUN_ERRORS: tuple[type[BaseException], ...] = (  # I/O binding and bad options raise the plain one
    RuntimeError,
    MemoryError,
    *_NATIVE_ERRORS,
)
_MEMORY_WORDS = ("failed to allocate", "bad allocation", "bad_alloc", "out of memory")


@dataclass(frozen=True)
class TensorInfo:
    """Name, element type and shape of a graph's input or output; a free dimension is -1."""

    name: str
    element_type: int
    shape: tuple[int, ...]

    @property
    def numpy_type(self) -> type[np.generic]:
        return _NUMPY_TYPES[self.element_type]


class Session:
    def __init__(
        self,
        path: Path,
        edited: graph.Graph,
        *,
        data: bytes | None,
        session_options: Mapping[str, Any],
        providers: Sequence[Provider],
    ) -> None:
        self._name = path.name
        self._options = session_options
        self._providers = providers
        self.has_positions = edited.has_positions
        self.windows = edited.windows  # {input of a cache that holds a window only: its size}
        self.shifts_windows = edited.shifts_windows
        self._session = self._open_edited(path, edited, data)
        # Its own copy of the bytes serves a fall-back that we do not use.
        self._session._model_bytes = None
        self.device_type = devices.check(self._session, providers)
        self.inputs = _infos(self._session.get_inputs())
        self.outputs = _infos(self._session.get_outputs())
        self.overridable = _infos(self._session.get_overridable_initializers())
        self._memory = {
            name: devices.Memory.of(info)
            for names, infos in (
                (self.inputs, self._session.get_input_memory_infos()),
                (self.outputs, self._session.get_output_memory_infos()),
            )
            for name, info in zip(names, infos, strict=True)
        }
        self._on_host = {name for name, memory in self._memory.items() if memory.is_host}
        self._on_host |= set(self.overridable)
        self._helpers: dict[tuple[str, tuple[int, ...]], Any] = {}

    def _open_edited(self, path: Path, edited: graph.Graph, data: bytes | None) -> Any:
        if edited.data is not None:
            try:
                return self._open(edited.data, path.parent)
            except ModelError as error:
                log.warning("%s is used as it is: %s", path.name, error)
                self.has_positions, self.windows = False, {}
        return self._open(data if data is not None else str(path), path.parent)

    def _open(self, source: str | bytes, folder: Path) -> Any:
        """On the devices that were asked for or, if the model does not start there, the host."""
        if any(provider.name != "cpu" for provider in self._providers):
            try:
                return self._start(source, folder, self._providers)
            except RUN_ERRORS as error:
                names = ", ".join(provider.name for provider in self._providers)
                log.warning("%s does not start on %s: %s", self._name, names, _words(error))
        try:
            return self._start(source, folder, ())
        except RUN_ERRORS as error:
            if _is_memory(error):
                raise OutOfMemoryError(f"Not enough memory to load {self._name}.") from error
            raise ModelError(f"{self._name} cannot be loaded: {_words(error)}") from error
        except TypeError as error:  # the runtime takes paths as text
            raise ModelError(
                f"The name of the folder of {self._name} is not valid text: rename the folder."
            ) from error

    def _start(self, source: str | bytes, folder: Path, providers: Sequence[Provider]) -> Any:
        options = native_options(self._options)
        if isinstance(source, bytes):
            options.add_session_config_entry(
                "session.model_external_initializers_file_folder_path", str(folder)
            )
        chosen = devices.add_providers(options, providers)
        return onnxruntime.InferenceSession(source, options, providers=chosen, enable_fallback=0)

    def io_binding(self) -> Any:
        return self._session.io_binding()

    def is_host(self, name: str) -> bool:
        """Whether an input or output lies in host memory, where a bound array is not copied."""
        return name in self._on_host

    def bind_output(self, binding: Any, name: str) -> None:
        """The next run makes a new tensor for this output, on the device that computes it."""
        memory = self._memory[name]
        binding.bind_output(name, memory.device_type, memory.device_id)

    def run(self, binding: Any, stop: Stop) -> None:
        """Raises Stopped if `stop` ended the run; the bound outputs are then worth nothing."""
        if stop.is_set():
            raise Stopped("The run was stopped.")
        try:
            self._session.run_with_iobinding(binding, stop.run_options)
        except RUN_ERRORS as error:
            self._fail(error, stop)

    def _fail(self, error: BaseException, stop: Stop) -> NoReturn:
        if stop.run_options.terminate:
            raise Stopped("The run was stopped.") from error
        if _is_memory(error):
            raise OutOfMemoryError("Not enough memory to run the model.") from error
        if "requires f16" in str(error):
            raise EngineError(
                "This graphics device does not compute with the 16-bit numbers of this model: "
                "choose another device or another form of the model."
            ) from error
        raise EngineError(f"The model could not run: {_words(error)}") from error

    def tensor(self, name: str, shape: Sequence[int]) -> Any:
        """A new tensor for the input or output `name`, on the device where it is used."""
        info = self.inputs.get(name) or self.outputs[name]
        try:
            return onnxruntime.OrtValue.ortvalue_from_shape_and_type(
                list(shape), info.element_type, **self._memory[name].placement
            )
        except (MemoryError, RuntimeError) as error:
            if not _is_memory(error):
                raise
            size = int(np.prod(shape)) * np.dtype(info.numpy_type).itemsize
            raise OutOfMemoryError(
                f"Not enough memory for {size / 2**20:.0f} MiB of the conversation's cache."
            ) from error

    def filled(self, name: str, shape: Sequence[int], value: int) -> Any:
        """On the host filled with `value`, elsewhere with zeros."""
        if value == 0 or not self.is_host(name):
            return self.zeros(name, shape)
        info = self.inputs[name]
        return host_tensor(np.full(shape, value, info.numpy_type), info.element_type)

    def zeros(self, name: str, shape: Sequence[int]) -> Any:
        if self.is_host(name):  # pages that nothing writes to are not even taken from the system
            info = self.inputs.get(name) or self.outputs[name]
            return host_tensor(np.zeros(shape, info.numpy_type), info.element_type)
        target = self.tensor(name, shape)
        if 0 not in shape:
            size = {"shape": host_tensor(np.array(shape, np.int64), INT64)}
            self._apply(graph.zeros_model, size, target)
        return target

    def resize(
        self,
        name: str,
        tensor: Any,
        *,
        first: int = 0,
        length: int,
        capacity: int,
        axis: int = 2,
    ) -> Any:
        """`length` positions from `first` on of a cache tensor, in a new one of `capacity`."""
        shape = list(tensor.shape())
        shape[axis] = capacity
        target = self.tensor(name, shape)
        if length == 0 and capacity == 0:
            return target
        given = {"x": tensor, **_range(first, first + length)}
        if capacity > length:
            shape[axis] = capacity - length
            given["filler"] = self.zeros(name, shape)
            self._apply(graph.grow_model, given, target, axis)
        else:
            self._apply(graph.cut_model, given, target, axis)
        return target

    def join(self, name: str, tensor: Any, other: Any, *, axis: int) -> Any:
        """Two cache tensors one after the other along an axis, in a new one."""
        shape = list(tensor.shape())
        length = shape[axis]
        shape[axis] += other.shape()[axis]
        target = self.tensor(name, shape)
        if 0 not in shape:
            given = {"x": tensor, **_range(0, length), "filler": other}
            self._apply(graph.grow_model, given, target, axis)
        return target

    def gather(
        self, tensors: Mapping[str, Any], indices: NDArray[np.int64], *, axis: int
    ) -> dict[str, Any]:
        """The slices `indices` along an axis of cache tensors by name, in new ones.

        All in one run: so many small ones cost more than what they copy.
        """
        found: dict[str, Any] = {}
        groups: dict[tuple[int, int], list[str]] = {}
        for name, tensor in tensors.items():
            shape = list(tensor.shape())
            shape[axis] = len(indices)
            found[name] = self.tensor(name, shape)
            if 0 not in shape:
                groups.setdefault((tensor.element_type(), len(shape)), []).append(name)
        numbers = host_tensor(np.ascontiguousarray(indices), INT64)
        for (element_type, rank), names in groups.items():
            given = {f"x{i}": tensors[name] for i, name in enumerate(names)}
            wanted = {f"y{i}": found[name] for i, name in enumerate(names)}
            key = element_type, rank, axis, len(names)
            helper = self._helper(graph.gather_model, key)
            self._run_helper(helper, {**given, "indices": numbers}, wanted)
        return found

    def _apply(
        self, make: Callable[..., bytes], given: Mapping[str, Any], target: Any, axis: int = 0
    ) -> None:
        """Run a small graph where the tensors lie, whatever device that is."""
        key = target.element_type(), len(target.shape()), axis
        self._run_helper(self._helper(make, key), given, {"y": target})

    def _helper(self, make: Callable[..., bytes], key: tuple[int, ...]) -> Any:
        if (make.__name__, key) not in self._helpers:
            threads = {} if make is graph.gather_model else {"intra_op_num_threads": 1}
            options = native_options(threads)
            chosen = devices.add_providers(options, self._providers)
            self._helpers[make.__name__, key] = onnxruntime.InferenceSession(
                make(*key), options, providers=chosen, enable_fallback=0
            )
        return self._helpers[make.__name__, key]

    def _run_helper(
        self, helper: Any, given: Mapping[str, Any], wanted: Mapping[str, Any]
    ) -> None:
        binding = helper.io_binding()
        for name, value in given.items():
            binding.bind_ortvalue_input(name, value)
        for name, value in wanted.items():
            binding.bind_ortvalue_output(name, value)
        try:
            helper.run_with_iobinding(binding)
        except RUN_ERRORS as error:
            self._fail(error, Stop())


def _range(start: int, end: int) -> dict[str, Any]:
    return {
        name: host_tensor(np.array([number], np.int64), INT64)
        for name, number in (("start", start), ("end", end))
    }


def host_tensor(array: Array, element_type: int) -> Any:
    """An OrtValue over the array's own memory; the array must be contiguous."""
    if element_type == BFLOAT16:
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, element_type)
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def to_numpy(tensor: Any) -> Array:
    """A copy on the host. bfloat16 comes as float32, since numpy has no such type."""
    if tensor.device_name() != "cpu":
        host = onnxruntime.OrtValue.ortvalue_from_shape_and_type(
            tensor.shape(), tensor.element_type()
        )
        devices.copy(tensor, host)
        tensor = host
    if tensor.element_type() == BFLOAT16:
        shape = tuple(tensor.shape())
        size = tensor.tensor_size_in_bytes()
        memory = ctypes.string_at(tensor.data_ptr(), size)  # numpy() has no type for it
        return widen(np.frombuffer(memory, np.uint16).reshape(shape), BFLOAT16)
    return np.array(tensor.numpy())


def widen(raw: Array, element_type: int) -> NDArray[np.float32]:
    """float32 values of float16, bfloat16 (as uint16) or float32 numbers."""
    if element_type == BFLOAT16:
        return (np.ascontiguousarray(raw).astype(np.uint32) << 16).view(np.float32)
    return raw.astype(np.float32)


def element_type_of(array: Array) -> int:
    for number, kind in _NUMPY_TYPES.items():
        if array.dtype == kind and number != BFLOAT16:
            return number
    raise TypeError(f"Arrays of type {array.dtype} cannot be given to a model.")


def _infos(arguments: Sequence[Any]) -> dict[str, TensorInfo]:
    found = {}
    for argument in arguments:
        shape = tuple(d if isinstance(d, int) else -1 for d in argument.shape)
        element = _ELEMENT_TYPES.get(argument.type)
        if element is None:
            raise ModelError(
                f"The graph's {argument.name} is a {argument.type}; only tensors work."
            )
        found[argument.name] = TensorInfo(argument.name, element, shape)
    return found


def _is_memory(error: BaseException) -> bool:
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(words in text for words in _MEMORY_WORDS)


def _words(error: BaseException) -> str:
    """The runtime's message without its code and source positions, one line."""
    text = str(error)
    if text.startswith("[ONNXRuntimeError]"):
        text = text.split(" : ", 3)[-1]
    return " ".join(text.split())[:300]
