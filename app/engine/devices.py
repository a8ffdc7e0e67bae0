"""Which execution providers really work here, and what a session was asked to run on.

onnxruntime.get_available_providers() tells what was compiled in, not what works, and a provider
that cannot start is dropped with a message on stderr only. So: look first, and compare afterwards.
"""

import contextlib
import ctypes
import importlib
import io
import logging
import operator
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as native

from app.engine import graph
from app.engine.config import DeviceFilter, Provider
from app.engine.errors import EngineError, ModelError, shown

log = logging.getLogger(__name__)

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
WEBGPU = "WebGpuExecutionProvider"
_NAMES = {"cpu": CPU, "cuda": CUDA, "webgpu": WEBGPU}
_WARNING, _FATAL = 2, 4  # onnxruntime's log levels
_current_gpu = 0
RUNTIME_ERRORS: tuple[type[BaseException], ...] = (
    RuntimeError,
    *(
        kind
        for kind in vars(native).values()
        if isinstance(kind, type) and issubclass(kind, Exception)
    ),
)
_DEVICE_TYPES = {CPU: "CPU", CUDA: "CUDA", WEBGPU: "WebGPU"}


def add_providers(options: Any, providers: Sequence[Provider]) -> list[Any] | None:
    """The `providers` argument of InferenceSession; None if a plug-in was added to `options`,
    which onnxruntime would drop for any argument.

    A provider that does not work here is left out with a line in the log that says why.
    """
    chosen: list[Any] = []
    for provider in providers:
        if provider.name == "cpu":
            continue
        why_not = problem(provider.name)
        if why_not:
            log.warning("%s is not used: %s", provider.name, why_not)
        elif provider.name == "webgpu":
            fitting = [d for d in _webgpu_devices() if _fits(provider, d.device)]
            if fitting:
                options.add_provider_for_devices(fitting[:1], dict(provider.options))
                return None
            log.warning("webgpu is not used: no device is of the kind that was asked for")
        else:
            if provider.device != DeviceFilter():
                log.warning("%s takes its device by set_current_gpu_device_id", provider.name)
            _load_cuda()
            options_given = {"device_id": str(_current_gpu), **provider.options}
            chosen.append((_NAMES[provider.name], options_given))
    return [*chosen, CPU]


def _fits(provider: Provider, device: Any) -> bool:
    return provider.device.fits(device.type.name.lower(), device.device_id, device.vendor_id)


def check(session: Any, providers: Sequence[Provider]) -> str:
    """The device type that the session truly runs on; logs where that is not what was asked."""
    works = session.get_providers()
    device_type = _DEVICE_TYPES.get(works[0], str(works[0]).removesuffix("ExecutionProvider"))
    for provider in providers:
        name = _NAMES.get(provider.name)
        if name not in works:
            log.warning("%s was asked for; the model runs on %s", provider.name, device_type)
    return device_type


@dataclass(frozen=True)
class Memory:
    """Where a tensor of a session lies: what onnxruntime's functions take for it."""

    device_type: str
    device_id: int
    placement: Mapping[str, Any]  # arguments of OrtValue.ortvalue_from_shape_and_type

    @classmethod
    def of(cls, info: Any) -> "Memory":
        """The built-in providers' memory is reached by name, a plug-in's as it is told."""
        name = info.name.lower()
        if name == "cuda":
            place = {"device_type": "cuda", "device_id": info.device_id}
            return cls("cuda", info.device_id, place)
        if name.startswith("webgpu"):
            return cls("webgpu", info.device_id, {"memory_info": info})
        return cls("cpu", 0, {"device_type": "cpu"})

    @property
    def is_host(self) -> bool:
        return self.device_type == "cpu"


def copy(source: Any, target: Any) -> None:
    """Copy a tensor to, from or on a device; CUDA's own copies serve where it is built in."""
    if "cuda" in (source.device_name(), target.device_name()):
        target.update_inplace(source)
    else:
        onnxruntime.copy_tensors([source], [target])


@cache
def problem(word: str) -> str:
    """Why the provider cannot work on this machine, "" if nothing speaks against it."""
    if word == "cpu":
        return ""
    if word == "cuda":
        return _cuda_problem()
    if word == "webgpu":
        return _webgpu_problem()
    return "this build does not support it"


@contextlib.contextmanager
def printed_to_log() -> Iterator[None]:
    """What onnxruntime's Python code prints goes to the log: stdout may be somebody's answer."""
    told = io.StringIO()
    try:
        with contextlib.redirect_stdout(told):
            yield
    finally:
        for line in told.getvalue().splitlines():
            log.info("%s", line)


def is_cuda_available() -> bool:
    return not problem("cuda")


def is_webgpu_available() -> bool:
    return not problem("webgpu")


def is_dml_available() -> bool:
    return False


def is_qnn_available() -> bool:
    return False


def is_openvino_available() -> bool:
    return False


def set_current_gpu_device_id(number: int) -> None:
    """The CUDA device of models opened from now on, unless their options name another."""
    global _current_gpu
    if isinstance(number, bool) or operator.index(number) < 0:
        raise EngineError(f"A device number is 0 or more, not {shown(number)}.")
    problem.cache_clear()
    _current_gpu = operator.index(number)


def get_current_gpu_device_id() -> int:
    return _current_gpu


PLUGIN = "webgpu"  # what we register its library as
_libraries: set[str] = set()  # names that are registered; the runtime does not tell


def register_execution_provider_library(name: str, path: str | os.PathLike[str]) -> None:
    """Make a provider known that comes as a library of its own."""
    _forget_what_works()
    try:
        with _quiet():
            onnxruntime.register_execution_provider_library(str(name), os.fspath(path))
        _libraries.add(str(name))
    except RUNTIME_ERRORS as error:
        words = " ".join(str(error).split())[:200]
        text = f"The provider library {shown(path)} cannot be loaded: {words}"
        raise EngineError(text) from error


def unregister_execution_provider_library(name: str) -> None:
    _forget_what_works()
    try:
        onnxruntime.unregister_execution_provider_library(str(name))
        _libraries.discard(str(name))
    except RUNTIME_ERRORS as error:
        raise EngineError(f"No provider library was registered as {shown(name)}.") from error


def physical_cores() -> int:
    """Cores that this process may use, hyper-threads counted once."""
    try:
        allowed = os.sched_getaffinity(0) if sys.platform == "linux" else set()
    except OSError:
        allowed = set()
    siblings = set()
    for cpu in allowed:
        topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            siblings.add(topology.read_text())
        except OSError:
            siblings.add(str(cpu))
    if siblings:
        return len(siblings)
    count = os.cpu_count() or 1
    return count if sys.platform == "darwin" else max(1, count // 2)


def _cuda_problem() -> str:
    if CUDA not in onnxruntime.get_available_providers():
        return "this onnxruntime was built without CUDA"
    library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return "no NVIDIA driver was found"
    status = driver.cuInit(0)
    if status:
        return f"the NVIDIA driver answers with error {status}"
    _load_cuda()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL
    with printed_to_log():
        return _trial_problem(options, CUDA, [(CUDA, {"device_id": str(_current_gpu)}), CPU])


def _webgpu_problem() -> str:
    try:
        found = _webgpu_devices()
    except ModelError as error:
        return str(error)
    if not found:
        return "no graphics device for it was found"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL
    options.add_provider_for_devices(found[:1], {})
    return _trial_problem(options, WEBGPU)


def _trial_problem(options: Any, provider: str, providers: list[Any] | None = None) -> str:
    """A device may be listed, and its driver not work: only a run on it tells."""
    try:
        model = graph.zeros_model(1, rank=1, axis=0)
        session = onnxruntime.InferenceSession(
            model, options, providers=providers, enable_fallback=0
        )
        session.run(None, {"shape": np.array([4], np.int64)})
    except RUNTIME_ERRORS as error:
        log.info("%s does not work: %s", provider, " ".join(str(error).split()))
        return "its driver does not work in a trial run"
    if provider not in session.get_providers():
        return "onnxruntime could not start it; its libraries may be missing"
    return ""


@cache
def _load_cuda() -> None:
    """NVIDIA's wheels are found only if loaded first; what is not there is told on stdout."""
    with printed_to_log():
        onnxruntime.preload_dlls()


@cache
def _webgpu_devices() -> list[Any]:
    """Raises ModelError with the reason if the plug-in is not there or cannot be loaded."""
    # Somebody may have made it known already; and a library that found no device stays loaded.
    if not _known_devices() and PLUGIN not in _libraries:
        try:
            plugin = importlib.import_module("onnxruntime_ep_webgpu")
            with _quiet():
                path = plugin.get_library_path()
                onnxruntime.register_execution_provider_library(PLUGIN, path)
            _libraries.add(PLUGIN)
        except ImportError as error:
            raise ModelError("the package onnxruntime-ep-webgpu is not installed") from error
        except Exception as error:  # what a plug-in raises here is not documented
            words = " ".join(str(error).split())[:200]
            raise ModelError(f"its plug-in could not be loaded: {words}") from error
    return _known_devices()


def _known_devices() -> list[Any]:
    return [device for device in onnxruntime.get_ep_devices() if device.ep_name == WEBGPU]


def _forget_what_works() -> None:
    for cached in (problem, _webgpu_devices):
        cached.cache_clear()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What libraries have to say while they load goes to stderr past our log."""
    onnxruntime.set_default_logger_severity(_FATAL)
    try:
        yield
    finally:
        onnxruntime.set_default_logger_severity(_WARNING)
