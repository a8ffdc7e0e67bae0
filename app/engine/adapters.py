"""Adapters: LoRA weights from .onnx_adapter files, for graphs that have inputs for them.

Checks at load that names, types and shapes are the model's, so that nothing fails later. Which ones
act is a Generator's business (set_active_adapter).
"""

import os
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnxruntime

from app.engine.errors import EngineError, ModelError
from app.engine.model import Model
from app.engine.session import RUN_ERRORS, TensorInfo

Parameters = Mapping[str, Any]


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
        if name in self._loaded:
            raise EngineError(f"An adapter named {name!r} is already loaded.")
        parameters = _read(Path(path))
        for parameter, tensor in parameters.items():
            self._check(Path(path).name, parameter, tensor)
        self._loaded[name] = parameters
        self._users[name] = weakref.WeakSet()

    def unload(self, name: str) -> None:
        self.parameters([name])
        if len(self._users[name]):
            raise EngineError(f"The adapter {name!r} is still in use by a generator.")
        del self._loaded[name], self._users[name]

    def parameters(self, names: Sequence[str]) -> Parameters:
        """Of several adapters; where two have the same parameter, the later one's."""
        found: dict[str, Any] = {}
        for name in names:
            if name not in self._loaded:
                known = ", ".join(map(repr, self._loaded)) or "none"
                raise EngineError(f"There is no adapter {name!r}; loaded: {known}.")
            found.update(self._loaded[name])
        return found

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


def _read(path: Path) -> Parameters:
    if not path.is_file():
        raise ModelError(f"There is no adapter file at {path}.")
    try:
        found = onnxruntime.AdapterFormat.read_adapter(str(path)).get_parameters()
    except RUN_ERRORS as error:
        raise ModelError(f"{path.name} is not an adapter file, or it is cut short.") from error
    if not found:
        raise ModelError(f"{path.name} holds no parameters.")
    return dict(found)
