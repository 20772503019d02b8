"""Kernel signatures, read from annotations (``kernels/_types.py``)."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple

from cocite.constants import PARSING

NUMBERS = {
    "Bool": "bool",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "I32": "int32",
    "I64": "int64",
    "F32": "float32",
    "F64": "float64",
}
"""NumPy's names of our number types."""

_ARRAY = re.compile(rf"(Out)?({'|'.join(NUMBERS)})s(\d?)")


class Number(NamedTuple):
    """A scalar."""

    dtype: str


class Array(NamedTuple):
    """A contiguous array, read-only unless ``written``."""

    dtype: str
    dimensions: int
    written: bool


class Struct(NamedTuple):
    """A named tuple of arrays."""

    kind: type
    items: tuple[Any, ...]


Type = Number | Array | Struct | tuple[Any, ...] | None
"""The type of a kernel's argument: a number, an array, a tuple of these, or None."""


class Signature(NamedTuple):
    """Argument types, result types, and the index among the kernel's signatures."""

    number: int
    arguments: tuple[Type, ...]
    returns: tuple[Number, ...]

    def symbol(self, name: str) -> str:
        """Return the library symbol of the kernel ``file.function``."""
        return f"{name.replace('.', '__')}__{self.number}"


class Variables(NamedTuple):
    """The type variables of a kernel: each of ``cases`` is combined with all ``choices``."""

    cases: tuple[Mapping[str, str], ...]
    choices: Mapping[str, tuple[str, ...]]

    def values(self) -> Iterator[dict[str, str]]:
        """Yield each assignment of types to the variables."""
        for case in self.cases or ({},):
            for chosen in product(*self.choices.values()):
                yield {**case, **dict(zip(self.choices, chosen, strict=True))}


def signatures(function: Callable[..., Any], variables: Variables) -> Iterator[Signature]:
    """Yield a kernel's signatures, one for each value of its type variables."""
    annotations = dict(function.__annotations__)
    back, names = annotations.pop("return"), function.__globals__
    for number, values in enumerate(variables.values()):
        arguments = tuple(_parsed(text, values, names) for text in annotations.values())
        found = _parsed(back, values, names)
        returns = (found,) if isinstance(found, Number) else found or ()
        yield Signature(number, arguments, returns)


def flat(kinds: Iterable[Type]) -> Iterator[Number | Array | None]:
    """Flatten tuples of types."""
    for kind in kinds:
        if kind is None or isinstance(kind, Number | Array):
            yield kind
        else:
            yield from flat(kind.items if isinstance(kind, Struct) else kind)


def _parsed(text: str, values: Mapping[str, str], names: Mapping[str, Any]) -> Any:
    for name, value in values.items():
        text = re.sub(rf"\b(Out)?{name}(s\d?)?\b", rf"\g<1>{value}\g<2>", text)
    with PARSING:
        tree = ast.parse(text, mode="eval")
    return _of(tree.body, values, names)


def _of(node: ast.expr, values: Mapping[str, str], names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant) and node.value is None:
        return None
    if isinstance(node, ast.Subscript):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return tuple(_of(each, values, names) for each in inner)
    name = ast.unparse(node)
    if name in NUMBERS:
        return Number(NUMBERS[name])
    if found := _ARRAY.fullmatch(name):
        return Array(NUMBERS[found[2]], int(found[3] or 1), bool(found[1]))
    kind = names[name]
    texts = (getattr(each, "__forward_arg__", each) for each in kind.__annotations__.values())
    items = (_parsed(text, values, names) for text in texts)
    return Struct(kind, tuple(items))
