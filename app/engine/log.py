"""Log options of the module: what the engine tells about its steps, and to whom. Off by default.

Lines go to the file of the option `filename`, else to the callback, else to the module's logger.
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from app.engine.errors import EngineError, shown

_logger = logging.getLogger("app.engine")
_SWITCHES = {
    "enabled", "generate_next_token", "append_next_tokens", "model_input_values",
    "model_output_shapes", "model_output_values", "model_logits", "hit_eos", "hit_max_length",
    "warning", "ansi_tags", "ort_lib",
}  # fmt: skip
_FIRST_VALUES = 10  # of a tensor

_on: dict[str, bool] = {}
_file: Path | None = None
_callback: Callable[[str], None] | None = None


def set_log_options(**options: Any) -> None:
    """Switches by name, and `filename`: "" for none."""
    global _file
    for name, value in options.items():
        if name == "filename":
            if not isinstance(value, (str, os.PathLike)):
                raise TypeError(f"The log option filename must be a path, not {shown(value)}.")
        elif name not in _SWITCHES:
            known = sorted({*_SWITCHES, "filename"})
            raise EngineError(f"Unknown log option {shown(name)}; known are {', '.join(known)}.")
        elif not isinstance(value, bool):
            raise TypeError(f"The log option {name} must be True or False, not {shown(value)}.")
    if "filename" in options:
        chosen = options.pop("filename")
        _file = _opened(Path(chosen)) if str(chosen) else None
    _on.update(options)
    if "ort_lib" in options:
        onnxruntime.set_default_logger_severity(1 if options["ort_lib"] else 3)


def set_log_callback(callback: Callable[[str], None] | None) -> None:
    """Receives each line as text, unless a file was named; None: the module's logger again."""
    global _callback
    if callback is not None and not callable(callback):
        raise TypeError("set_log_callback takes a function or None.")
    _callback = callback


def is_on(what: str) -> bool:
    return bool(_on) and _on.get("enabled", False) and _on.get(what, False)


def note(what: str, value: object) -> None:
    if not is_on(what):
        return
    line = f"{what}: {_words(value)}"
    if _on.get("ansi_tags"):
        line = f"\x1b[1m{what}\x1b[0m: {_words(value)}"
    try:
        _write(line)
    except Exception:  # somebody's function or disk; a text that is being written is not its fault
        _logger.exception("A line of the engine's log was lost")


def _write(line: str) -> None:
    if _file is not None:
        with _file.open("a", encoding="utf-8", errors="replace") as file:
            file.write(line + "\n")
    elif _callback is not None:
        _callback(line)
    else:
        _logger.info(line)


def _words(value: object) -> str:
    if isinstance(value, np.ndarray) and value.size > _FIRST_VALUES:
        first = ", ".join(f"{number:.6g}" for number in value.reshape(-1)[:_FIRST_VALUES])
        return f"{list(value.shape)} {value.dtype} [{first}, ...]"
    return str(value)


def _opened(path: Path) -> Path:
    try:
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise EngineError(f"{path} cannot be written: {error.strerror or error}.") from error
    return path
