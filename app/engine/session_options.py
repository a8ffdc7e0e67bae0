"""session_options of genai_config.json, with our defaults, as the runtime takes them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import onnxruntime

from app.engine import devices
from app.engine.errors import ModelError, shown

_FEW_CORES = 2
_OPTIMIZATION = {
    "ORT_DISABLE_ALL": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "ORT_ENABLE_BASIC": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "ORT_ENABLE_EXTENDED": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "ORT_ENABLE_ALL": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
_TYPED = {
    "intra_op_num_threads": ("intra_op_num_threads", int),
    "inter_op_num_threads": ("inter_op_num_threads", int),
    "enable_cpu_mem_arena": ("enable_cpu_mem_arena", bool),
    "enable_mem_pattern": ("enable_mem_pattern", bool),
    "log_id": ("logid", str),
    "log_severity_level": ("log_severity_level", int),
    "log_verbosity_level": ("log_verbosity_level", int),
}


def native_options(values: Mapping[str, Any]) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # what matters comes back as an error
    cores = devices.physical_cores()
    options.intra_op_num_threads = cores
    values = {**_waiting(cores), **values}
    for name, value in values.items():
        if name == "provider_options" or value is None:
            continue
        if name in _TYPED:
            attribute, kind = _TYPED[name]
            if not isinstance(value, kind):
                raise ModelError(
                    f"session_options.{name} must be {kind.__name__}, not {shown(value)}."
                )
            with _refused(name, value):
                setattr(options, attribute, value)
        elif name == "graph_optimization_level":
            if str(value) not in _OPTIMIZATION:
                raise ModelError(f"session_options.{name} is not known: {shown(value)}.")
            options.graph_optimization_level = _OPTIMIZATION[str(value)]
        elif name == "enable_profiling":
            options.enable_profiling = True
            options.profile_file_prefix = str(value)
        elif name == "custom_ops_library":
            raise ModelError("session_options.custom_ops_library is not supported.")
        else:
            with _refused(name, value):
                options.add_session_config_entry(name, str(value))
    return options


@contextmanager
def _refused(name: str, value: object) -> Iterator[None]:
    """What the runtime does not take: too large a number, too long a text."""
    try:
        yield
    except (TypeError, RuntimeError) as error:
        text = f"session_options.{name:.40} is out of range: {shown(value)}."
        raise ModelError(text) from error


def _waiting(cores: int) -> dict[str, str]:
    """How threads wait for each other within a run; between runs they always sleep.

    Sleeping and waking takes as long as a small product does, so a thread spins for a moment first.
    With two cores something else runs too, the window at least, and a thread that spins for long
    keeps the other one's work from its core. Measured with a 135M model on two cores, idle and
    beside one and two busy processes: 30 microseconds 8.7, 14.4 and 16.8 ms a token; never 12.7,
    14.2 and 18.4; as long as the runtime would 8.8, 16.2 and 20.8.
    """
    moment = {"session.intra_op.spin_duration_us": "30"} if cores <= _FEW_CORES else {}
    return {"session.force_spinning_stop": "1", **moment}
