"""One graph of the model in use by one Decoder: what is bound to it, and what it put out last.

Knows names and tensors, not what they mean.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from app.engine.errors import EngineError
from app.engine.feeds import Feed, Span
from app.engine.model import Part
from app.engine.session import BFLOAT16, Array, TensorInfo, element_type_of, host_tensor
from app.engine.stop import Stop


class Stage:
    """`outside` are inputs and outputs that others bind: caches and logits. `passed` are inputs
    that come from earlier stages, or from outside for one run."""

    def __init__(
        self,
        part: Part,
        feeds: Mapping[str, Feed],
        *,
        outside: Collection[str],
        passed: Collection[str],
    ) -> None:
        self.part, self.session, self.feeds = part, part.session, feeds
        self.binding = self.session.io_binding()
        self.last_inputs: dict[str, Array] = {}
        self.is_stale = True  # what it put out is not of the inputs that are set now
        self._outside, self._once = set(outside), {*feeds, *passed}
        self._inputs = sorted(set(self.session.inputs) - self._outside)
        self._free = [name for name in self.session.outputs if name not in self._outside]
        self._given: dict[str, Array] = {}  # set from outside, kept
        self._given_once: dict[str, Array] = {}  # in place of what we feed, for the next run
        self._bound: dict[str, Array] = {}
        for name in self._free:  # bound first, so that they are the first of get_outputs too
            self.session.bind_output(self.binding, name)

    @property
    def has_given_once(self) -> bool:
        return bool(self._given_once)

    def give(self, name: str, array: Array) -> None:
        """An input's value from outside: kept, or for the next run if it changes at each."""
        info = self.session.inputs.get(name) or self.session.overridable[name]
        _check_shape(name, array.shape, info.shape)
        copy = _converted(name, array, info)
        (self._given_once if name in self._once else self._given)[name] = copy
        self.is_stale = True

    def bind_inputs(self, span: Span, passed: Mapping[str, Any]) -> None:
        """`passed` are tensors of earlier stages by name."""
        given_once, self._given_once = self._given_once, {}
        values = {name: feed(span) for name, feed in self.feeds.items()}
        if self._given or given_once:
            for name, array in given_once.items() if not self.part.runs_once else ():
                _check_run_shape(name, array, values.get(name))
            values.update(self._given)
            values.update(given_once)
        for name in self._inputs:
            if name in values:
                continue
            if name not in passed:
                raise EngineError(f"The model needs the input {name}, which is not set.")
            self.bind_tensor(name, passed[name])
        for name, array in values.items():
            self.bind(name, array)
        self.last_inputs = values

    def bind(self, name: str, array: Array) -> None:
        """An array that is bound already has only got new values, which a device gets by a copy;
        what was given for good has not even those."""
        is_known = self._bound.get(name) is array
        if is_known and (self.session.is_host(name) or self._given.get(name) is array):
            return
        self._bound[name] = array
        info = self.session.inputs.get(name) or self.session.overridable[name]
        self.binding.bind_ortvalue_input(name, host_tensor(array, info.element_type))

    def bind_tensor(self, name: str, tensor: Any) -> None:
        self._bound.pop(name, None)
        self.binding.bind_ortvalue_input(name, tensor)

    def forget_inputs(self) -> None:
        """What is bound is bound again before the next run, or has the graph's own value."""
        self.binding.clear_binding_inputs()
        self._bound.clear()

    def run(self, stop: Stop) -> None:
        for name in self._free:
            self.session.bind_output(self.binding, name)
        self.is_stale = True
        self.session.run(self.binding, stop)
        self.is_stale = False

    def output(self, name: str) -> Any | None:
        """What the last run gave under a name that no one else binds."""
        if self.is_stale or name not in self._free:
            return None
        return self.binding.get_outputs()[self._free.index(name)]

    def passed_on(self) -> dict[str, Any]:
        """The tensors that later stages may ask for, by the names that they know them by."""
        if not self._free:
            return {}
        found = zip(self._free, self.binding.get_outputs(), strict=False)
        return {self.part.renamed.get(name, name): tensor for name, tensor in found}


def _check_run_shape(name: str, given: Array, ours: Array | None) -> None:
    """In place of what we would feed only what has its shape: runtimes trust some of these."""
    if ours is not None and ours.size and ours.shape != given.shape:
        raise EngineError(
            f"In this run the input {name} takes the shape {list(ours.shape)}, "
            f"not {list(given.shape)}."
        )


def _converted(name: str, array: Array, info: TensorInfo) -> Array:
    """A copy as the graph's type: whole numbers of another size if they fit, floats as floats."""
    wanted = np.dtype(info.numpy_type)
    if element_type_of(array) == info.element_type:
        return np.array(array, order="C", copy=True)
    if info.element_type == BFLOAT16:
        raise EngineError(f"The input {name} takes bfloat16, which no numpy array holds.")
    kinds = (array.dtype.kind, wanted.kind)
    if not set(kinds) <= set("iu") and kinds != ("f", "f"):
        raise EngineError(f"The input {name} takes {wanted}, not {array.dtype}.")
    with np.errstate(over="ignore"):
        copy = np.array(array.astype(wanted), order="C")
    if "f" not in kinds and not np.array_equal(copy, array):
        raise EngineError(f"The input {name} takes {wanted}; a number is too large for that.")
    return copy


def _check_shape(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if len(shape) != len(wanted) or any(
        w >= 0 and w != s for s, w in zip(shape, wanted, strict=True)
    ):
        pretty = [w if w >= 0 else "any" for w in wanted]
        raise EngineError(f"The input {name} takes the shape {pretty}, not {list(shape)}.")
