"""What a chat template may take of the machine: steps, time, and memory.

A template comes with a model from somewhere, and Jinja itself has no end: one line can ask for a
text of a gigabyte or for a loop that outlasts the evening. Here every step of a template counts,
what an operation would make is measured before it makes it, and what it made counts towards a sum.
Invariant: outside of `bounded` a _Sandbox neither compiles nor renders.
"""

import functools
import re
import string
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

LONGEST_TEMPLATE = 1 << 18  # characters; the longest of known models has 30,000
LONGEST_TEXT = 1 << 24  # characters of one value
MOST_ITEMS = 1 << 18  # of one list, all that it holds counted
MOST_BYTES = 1 << 29  # of all values together that are made on the way
MOST_STEPS = 3_000_000
MOST_SECONDS = 1.5  # of this thread's own computing
_LARGEST_NUMBER = 10_000  # that a filter is given: a width, a count
_MOST_BITS = 1 << 15  # of a whole number
_CLOCK_EVERY = 256  # steps

Filter = Callable[..., Any]
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_CONTAINERS = (list, tuple, dict, set, *_VIEWS, Namespace)


class TooMuch(BaseException):
    """A bound was reached. Not an Exception, so that nothing within Jinja takes it for its own."""


class _Budget:
    def __init__(self) -> None:
        self.steps, self.size_bytes = MOST_STEPS, MOST_BYTES
        self.end_s = time.thread_time() + MOST_SECONDS

    def step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise TooMuch("it takes too many steps")
        if self.steps % _CLOCK_EVERY == 0 and time.thread_time() > self.end_s:
            raise TooMuch("it takes too long")

    def spend(self, value: Any) -> None:
        self.size_bytes -= _size_bytes(value)
        if self.size_bytes < 0:
            raise TooMuch("it takes too much memory")


_budget: ContextVar[_Budget] = ContextVar("_budget")


@contextmanager
def bounded() -> Iterator[None]:
    """Every line of a template and every call that it leads to is a step, watched in this thread.

    A function for tracing that others have set rests meanwhile.
    """
    budget = _Budget()
    token = _budget.set(budget)
    others = sys.gettrace()

    def line(frame: FrameType, event: str, argument: object) -> Any:
        budget.step()
        return line

    def call(frame: FrameType, event: str, argument: object) -> Any:
        budget.step()
        return line if _is_template(frame.f_code) else None

    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(others)
        _budget.reset(token)


def _is_template(code: CodeType) -> bool:
    return code.co_filename == "<template>"


# ---------------------------------------------------------------- measures


def _size_bytes(value: Any) -> int:
    if isinstance(value, (str, bytes)):
        return sys.getsizeof(value)
    if isinstance(value, (list, tuple)):
        return 8 * len(value)
    return 64 * len(value) if isinstance(value, dict) else 0


def _weigh(*values: Any) -> tuple[int, int, int]:
    """(items, characters, depth) as if every value within were written out; too much raises."""
    items = characters = deepest = 0
    waiting = [(value, 1) for value in values]
    while waiting:
        value, depth = waiting.pop()
        items += 1
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, _CONTAINERS):
            deepest = max(deepest, depth)
            if isinstance(value, Namespace):
                value = value._Namespace__attrs  # written out, it shows them
            parts = [*value, *value.values()] if isinstance(value, dict) else value
            if items + len(waiting) + len(parts) > MOST_ITEMS:
                raise TooMuch("a value in it is too large")
            waiting += [(part, depth + 1) for part in parts]
        if characters > LONGEST_TEXT:
            raise TooMuch("a text in it is too long")
    return items, characters, deepest


def _check_text(length: float) -> None:
    if length > LONGEST_TEXT:
        raise TooMuch("a text in it is too long")


def _check_format(text: str, values: Sequence[Any], named: Mapping[str, Any]) -> None:
    """Before `text` is filled in by % or format: widths that are told, and values again and again.

    A width that is a value itself is not possible.
    """
    fields = text.count("%") + text.count("{")
    nested = "*" in text and "%" in text
    if "{" in text:
        parts = string.Formatter().parse(text)
        nested |= any(spec and "{" in spec for _, _, spec, _ in parts)
    if nested:
        raise TooMuch("a format in it takes its width from a value")
    widths = sum(int(number[:9]) for number in re.findall(r"\d+", text))
    _, longest, _ = _weigh(*values, *named.values())
    _check_text(len(text) + widths + fields * (longest + 32))


def _check_replace(text: str, old: str, new: str, *_: Any) -> None:
    _check_text(len(text) + text.count(old) * max(0, len(new) - len(old)))


def _made(value: Any) -> Any:
    """A value that was made just now counts."""
    _budget.get().spend(value)
    return value


def _measured(value: Any) -> Any:
    """What is compared or hashed is not endless when written out, however few its parts are."""
    if isinstance(value, _CONTAINERS):
        _weigh(value)
    return value


# ---------------------------------------------------------------- filters and methods


_CHEAP_FILTERS = {
    "abs", "count", "d", "default", "first", "items", "last", "length", "list", "map", "reject",
    "rejectattr", "reverse", "select", "selectattr",
}  # fmt: skip
_FILTERS = _CHEAP_FILTERS | {
    "capitalize", "center", "dictsort", "e", "escape", "float", "format", "groupby", "indent",
    "int", "join", "lower", "max", "min", "replace", "round", "safe", "slice", "sort", "string",
    "sum", "title", "tojson", "trim", "truncate", "unique", "upper", "urlencode", "wordcount",
}  # fmt: skip
_COMPARING_TESTS = {
    "==", "eq", "equalto", "!=", "ne", ">", "gt", "greaterthan", ">=", "ge", "<", "lt", "lessthan",
    "<=", "le", "in",
}  # fmt: skip
_METHODS: dict[type, set[str]] = {
    str: {
        "capitalize", "casefold", "center", "count", "endswith", "expandtabs", "find", "format",
        "index", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier",
        "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper", "join", "ljust",
        "lower", "lstrip", "partition", "removeprefix", "removesuffix", "replace", "rfind",
        "rindex", "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith",
        "strip", "swapcase", "title", "upper", "zfill",
    },
    dict: {"copy", "get", "items", "keys", "values"},
    list: {"copy", "count", "index"},
    tuple: {"count", "index"},
    bytes: set(),
    int: set(),
    float: set(),
    complex: set(),
}  # fmt: skip


def _guarded(name: str, function: Filter) -> Filter:
    """A filter that measures what it is given and counts what it gives."""
    first = 1 if hasattr(function, "jinja_pass_arg") else 0  # Jinja's own argument

    @functools.wraps(function)
    def guarded(*arguments: Any, **named: Any) -> Any:
        own, (value, *others) = arguments[:first], arguments[first:]
        for number in (*others, *named.values()):
            if isinstance(number, int) and abs(number) > _LARGEST_NUMBER:
                raise TooMuch("a number in it is too large")
        if name not in _CHEAP_FILTERS:
            if isinstance(value, Iterator):
                value = list(value)
            weights = _weigh(value, *others, *named.values())
            _check_filter(name, value, others, named, weights)
        return _made(function(*own, value, *others, **named))

    return guarded


def _check_filter(
    name: str,
    value: Any,
    others: Sequence[Any],
    named: Mapping[str, Any],
    weights: tuple[int, int, int],
) -> None:
    items, characters, depth = weights
    texts = [len(text) for text in (*others, *named.values()) if isinstance(text, str)]
    numbers = [number for number in (*others, *named.values()) if isinstance(number, int)]
    if name == "format":
        _check_format(str(value), others, named)
    elif name == "replace":
        old, new, *_ = [*others, *named.values(), "", ""]
        _check_replace(str(value), str(old), str(new))
    elif name == "join":
        _check_text(characters + items * sum(texts))
    elif name == "indent":
        _check_text(characters + str(value).count("\n") * max([4, *numbers, *texts]))
    elif name == "tojson":
        separators = sum(len(str(part)) for part in (*others, *named.values()))
        _check_text(characters + items * (separators + depth * max([0, *numbers])))
    elif name == "sum" and not isinstance(named.get("start", [*others, 0, 0][1]), (int, float)):
        raise TypeError("sum starts from a number")


def _check_method(owner: Any, name: str, arguments: Sequence[Any]) -> Sequence[Any]:
    """Before a method of a text or a list is called; an iterator becomes a list."""
    if name == "join" and arguments:
        parts = list(arguments[0])
        items, characters, _ = _weigh(parts)
        _check_text(characters + items * len(owner))
        return [parts]
    if name == "replace" and len(arguments) >= 2:
        _check_replace(owner, str(arguments[0]), str(arguments[1]))
    elif name in ("center", "ljust", "rjust", "zfill") and arguments:
        _check_text(arguments[0])
    elif name == "expandtabs":
        _check_text(owner.count("\t") * max([8, *arguments]))
    elif not isinstance(owner, str):
        _weigh(*arguments)
        if name in ("count", "index"):
            _weigh(owner)
    return arguments


# ---------------------------------------------------------------- the sandbox


class _Watched(NodeTransformer):
    """Puts a measure around what Jinja compiles to plain Python: comparing, joining, slicing."""

    def generic_visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        super().generic_visit(node, *args, **kwargs)
        if isinstance(node, nodes.Concat):
            return _filter(nodes.List(node.nodes, lineno=node.lineno), "_join")
        if isinstance(node, nodes.Compare):
            node.expr = _filter(node.expr, "_measured")
            for operand in node.ops:
                operand.expr = _filter(operand.expr, "_measured")
        elif isinstance(node, nodes.Dict):
            for pair in node.items:
                pair.key = _filter(pair.key, "_measured")
            return _filter(node, "_made")
        is_slice = isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Slice)
        return _filter(node, "_made") if is_slice or isinstance(node, nodes.List) else node


def _filter(node: nodes.Expr, name: str) -> nodes.Expr:
    if isinstance(node, nodes.Const):
        return node
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class BoundedSandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(ImmutableSandboxedEnvironment.default_binop_table)

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, finalize=_text)
        self.filters = {name: _guarded(name, self.filters[name]) for name in sorted(_FILTERS)}
        self.filters |= {"_made": _made, "_measured": _measured, "_join": _join}
        for name in _COMPARING_TESTS:
            test: Any = self.tests[name]
            self.tests[name] = _measuring(test)
        del self.globals["lipsum"]
        self.concat = _concat  # type: ignore[method-assign]

    def add_filter(self, name: str, function: Filter) -> None:
        self.filters[name] = _guarded(name, function)

    def from_string(self, source: str, *args: Any, **kwargs: Any) -> jinja2.Template:  # type: ignore[override]
        if len(source) > LONGEST_TEMPLATE:
            raise TooMuch("it is too long")
        return super().from_string(source, *args, **kwargs)

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        watched = _Watched().visit(source)
        watched.set_environment(self)
        return super()._generate(watched, *args, **kwargs)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        for kind, methods in _METHODS.items():
            if isinstance(obj, kind):
                return attr in methods or attr in getattr(type(obj), "_fields", ())
        return super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        inner = super().wrap_str_format(value)
        if inner is None or value.__name__ != "format":
            return None

        def format(*arguments: Any, **named: Any) -> str:
            _check_format(value.__self__, arguments, named)
            return str(_made(inner(*arguments, **named)))

        return format

    def getitem(self, obj: Any, argument: Any) -> Any:
        return super().getitem(obj, _measured(argument))

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        owner = getattr(__obj, "__self__", None)
        given: Sequence[Any] = args
        if isinstance(owner, tuple(_METHODS)):
            _weigh(*kwargs.values())
            given = _check_method(owner, __obj.__name__, [*args, *kwargs.values()])
            given = given[: len(args)]
        return _made(super().call(__context, __obj, *given, **kwargs))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "*":
            _check_product(left, right)
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            _check_bits(left.bit_length() * abs(right))
        elif operator == "%" and isinstance(left, str):
            _check_format(left, [right], {})
        elif operator == "+" and isinstance(left, (str, list, tuple)):
            _check_sum(left, right)
        return _made(super().call_binop(context, operator, left, right))


def _check_sum(left: Any, right: Any) -> None:
    length = len(left) + (len(right) if hasattr(right, "__len__") else 0)
    if length > (LONGEST_TEXT if isinstance(left, str) else MOST_ITEMS):
        raise TooMuch("a value in it is too large")


def _check_product(left: Any, right: Any) -> None:
    for many, count in ((left, right), (right, left)):
        if isinstance(many, (str, list, tuple)) and isinstance(count, int):
            _check_text(len(many) * count * (1 if isinstance(many, str) else 32))
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())


def _check_bits(count: int) -> None:
    if count > _MOST_BITS:
        raise TooMuch("a number in it is too large")


def _measuring(test: Filter) -> Filter:
    @functools.wraps(test)
    def measuring(*arguments: Any) -> Any:
        return test(*map(_measured, arguments))

    return measuring


def _text(value: Any) -> Any:
    """What is written out; most is text already."""
    return value if isinstance(value, str) else _join([value])


def _join(values: Sequence[Any]) -> str:
    _weigh(values)
    return str(_made("".join(map(str, values))))


def _concat(pieces: Any) -> str:
    parts = list(pieces)
    _check_text(sum(map(len, parts)))
    return str(_made("".join(parts)))
