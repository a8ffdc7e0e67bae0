"""Log options of the module: what the engine tells about its steps, and to whom. Off by default."""

import logging
from collections.abc import Callable
from typing import Any

from app.engine.errors import EngineError

_logger = logging.getLogger("app.engine")
_OPTIONS = {
    "enabled", "generate_next_token", "append_next_tokens", "model_input_values",
    "model_output_shapes", "model_output_values", "model_logits", "hit_eos", "hit_max_length",
    "warning", "ansi_tags", "ort_lib",
}  # fmt: skip
_on: dict[str, bool] = {}
_callback: Callable[[str], None] | None = None


def set_log_options(**options: Any) -> None:
    for name, value in options.items():
        if name not in _OPTIONS:
            raise EngineError(f"Unknown log option {name!r}; known are {sorted(_OPTIONS)}.")
        if not isinstance(value, bool):
            raise TypeError(f"The log option {name} must be True or False, not {value!r}.")
    _on.update(options)


def set_log_callback(callback: Callable[[str], None] | None) -> None:
    """Receives each line as text; None sends them to the module's logger again."""
    global _callback
    if callback is not None and not callable(callback):
        raise TypeError("set_log_callback takes a function or None.")
    _callback = callback


def note(what: str, value: object) -> None:
    if not _on or not (_on.get("enabled") and _on.get(what)):
        return
    line = f"{what}: {value}"
    if _callback is not None:
        _callback(line)
    else:
        _logger.info(line)
