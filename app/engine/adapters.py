"""Adapters: LoRA weights from .onnx_adapter files, for graphs that have inputs for them.

Checks at load that names, types and shapes are the model's, so that nothing fails later. Which ones
act is a Generator's business (set_active_adapter). Several at once act as the sum of their parts:
of low-rank pairs A (in, r) and B (r, out) the ranks are joined, since [A1 A2] [B1; B2] is
A1 B1 + A2 B2.
"""

import os
import re
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from app.engine.errors import EngineError, ModelError, shown
from app.engine.model import Model
from app.engine.session import RUN_ERRORS, TensorInfo, host_tensor, to_numpy

Parameters = Mapping[str, Any]
_UNREADABLE: tuple[type[BaseException], ...] = (*RUN_ERRORS, UnicodeError)
_ROLE = re.compile(r"(?i)(?:lora|adapter)[._-]?(?P<role>[ab])(?![a-z0-9])")


class Adapters:
    """Loaded adapters of one model by name; any number of Generators may use them."""

    def __init__(self, model: Model) -> None:
        if not isinstance(model, Model):
            raise TypeError(f"Adapters are made for a Model, not for {type(model).__name__}.")
        self._inputs: dict[str, TensorInfo] = {}
        for part in model.parts:
            self._inputs |= part.session.overridable
        self._loaded: dict[str, Parameters] = {}
        self._users: dict[str, weakref.WeakSet[object]] = {}

    def load(self, path: str | os.PathLike[str], name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"An adapter is named by text, not {type(name).__name__}.")
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"An adapter is loaded from a path, not {type(path).__name__}.")
        if name in self._loaded:
            raise EngineError(f"An adapter named {shown(name)} is already loaded.")
        file = Path(path)
        parameters = _read(file)
        for parameter, tensor in parameters.items():
            self._check(file.name, parameter, tensor)
        self._loaded[name] = parameters
        self._users[name] = weakref.WeakSet()

    def unload(self, name: str) -> None:
        self.parameters([name])
        if len(self._users[name]):
            raise EngineError(f"The adapter {shown(name)} is still in use by a generator.")
        del self._loaded[name], self._users[name]

    def parameters(self, names: Sequence[str]) -> Parameters:
        """Of several adapters at once; a name that is told twice counts once."""
        found: dict[str, list[str]] = {}  # parameter -> the adapters that have it
        for name in dict.fromkeys(names):
            if name not in self._loaded:
                known = ", ".join(map(repr, self._loaded)) or "none"
                raise EngineError(f"There is no adapter {shown(name)}; loaded: {known}.")
            for parameter in self._loaded[name]:
                found.setdefault(parameter, []).append(name)
        return {
            parameter: self._loaded[having[0]][parameter]
            if len(having) == 1
            else self._joined(parameter, having, found)
            for parameter, having in found.items()
        }

    def _joined(self, parameter: str, having: list[str], found: dict[str, list[str]]) -> Any:
        """One half of a low-rank pair with the ranks of all adapters, one after the other."""
        both = " and ".join(map(repr, having))
        other = _other_half(parameter)
        if found.get(other) != having:
            raise EngineError(
                f"The adapters {both} both set {parameter}, which is not half of a low-rank pair: "
                "they cannot act at once."
            )
        axis, other_axis = self._rank_axis(parameter), self._rank_axis(other)
        if axis is None or other_axis is None:
            raise EngineError(
                f"The adapters {both} cannot act at once: the model fixes the rank of {parameter}; "
                "choose one, or export the model with a free rank."
            )
        for name in having:
            rank = self._loaded[name][parameter].shape()[axis]
            if rank != self._loaded[name][other].shape()[other_axis]:
                raise EngineError(f"{parameter} and {other} of {shown(name)} differ in rank.")
        parts = [to_numpy(self._loaded[name][parameter]) for name in having]
        joined = np.concatenate(parts, axis=axis)
        return host_tensor(joined, self._inputs[parameter].element_type)

    def _rank_axis(self, parameter: str) -> int | None:
        """The one axis of a matrix whose size the graph leaves open."""
        shape = self._inputs[parameter].shape
        free = [axis for axis, size in enumerate(shape) if size < 0]
        return free[0] if len(shape) == 2 and len(free) == 1 else None

    def lend(self, user: object, names: Sequence[str]) -> None:
        """From now on `user` uses these and no others."""
        for name, users in self._users.items():
            users.discard(user)
            if name in names:
                users.add(user)

    def _check(self, file: str, parameter: str, tensor: Any) -> None:
        info = self._inputs.get(parameter)
        if info is None:
            raise ModelError(f"{file} does not fit the model: it has no input {parameter}.")
        shape = tuple(tensor.shape())
        fits = len(shape) == len(info.shape) and all(
            wanted in (-1, given) for wanted, given in zip(info.shape, shape, strict=True)
        )
        if not fits or tensor.element_type() != info.element_type:
            raise ModelError(
                f"{file} does not fit the model: {parameter} is {tensor.data_type()} "
                f"{list(shape)}, the model takes {list(info.shape)}."
            )


def _other_half(parameter: str) -> str:
    """The name of B for that of A, and the other way round; "" for other parameters."""
    matches = list(_ROLE.finditer(parameter))
    if not matches:
        return ""
    at = matches[-1].start("role")
    swapped = {"A": "B", "B": "A", "a": "b", "b": "a"}[parameter[at]]
    return parameter[:at] + swapped + parameter[at + 1 :]


def _read(path: Path) -> Parameters:
    if not os.path.isfile(path):  # Path's own raises for a name that is too long
        raise ModelError(f"There is no adapter file at {path!s:.300}.")
    try:
        found = onnxruntime.AdapterFormat.read_adapter(str(path)).get_parameters()
    except _UNREADABLE as error:
        raise ModelError(f"{path.name} is not an adapter file, or it is cut short.") from error
    if not found:
        raise ModelError(f"{path.name} holds no parameters.")
    return dict(found)
