"""Load the compiled kernels, and call them.

``@kernel`` marks functions that Python calls, ``@helper`` functions that kernels call, ``@shared``
functions that both call. Annotations give the types (``kernels/_types.py``). The build compiles all
kernels with Numba into one library per processor type (``hatch_build.py``); kernels are called
through ctypes without the interpreter lock. Calls need neither Numba nor a compiler, and load no
code from user-writable directories. With ``COCITE_JIT=1``, Numba compiles functions on first use.

The library reads address, dimensions, type and flags from NumPy's array struct, whose layout is the
same in all releases, and returns ``MISMATCH`` if they differ from the declaration. It does not use
Python's C API, so one build serves all versions of Python. A call costs one to two microseconds.
"""

from __future__ import annotations

import ast
import ctypes
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial, update_wrapper
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cocite.constants import PARSING
from cocite.errors import ResourceError

JIT = os.environ.get("COCITE_JIT", "") not in ("", "0")
"""Whether Numba compiles kernels on first use."""

MISMATCH = 99
"""Return value of the library for an array that does not match its declaration."""

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

DTYPES = tuple(map(np.dtype, NUMBERS.values()))
"""The types of arrays, in the same order as in the library's table."""

_C: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
_PLAIN = {"bool": bool, "int64": int, "float64": float}
"""Number types that Python has as well; their values are passed unchanged."""


# -- signatures, read from annotations --------------------------------------------------

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
    """Argument types, result types, and the signature's index among those of the kernel."""

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
    """Yield a kernel's signatures, one for each assignment of its type variables."""
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


# -- the library -------------------------------------------------------------------------


def library_path() -> Path:
    """Return the path of the library that suits this processor best. For tests, ``COCITE_TARGET``
    selects another processor type, and ``COCITE_CHECKED=1`` the library that checks bounds.
    """
    checked = "-checked" if os.environ.get("COCITE_CHECKED", "") not in ("", "0") else ""
    chosen = os.environ.get("COCITE_TARGET")
    paths = [
        Path(__file__).with_name(f"_native-{target}{checked}.so")
        for target in ([chosen] if chosen else targets())
    ]
    return next((path for path in paths if path.exists()), paths[0])


def targets() -> list[str]:
    """Return the processor's targets (x86-64 levels, or its architecture), best first."""
    machine = platform.machine()
    if machine not in ("x86_64", "AMD64"):
        return ["aarch64" if machine == "arm64" else machine]
    from numpy._core import _multiarray_umath as numpy_core

    has = getattr(numpy_core, "__cpu_features__", {})
    v3 = has.get("AVX2") and has.get("FMA3")
    return ["x86-64-v3", "x86-64-v2"] if v3 else ["x86-64-v2"]


@cache
def library() -> ctypes.CDLL:
    """Load the library of all kernels. Raises ``ResourceError`` if it was not built."""
    path = library_path()
    try:
        found = ctypes.CDLL(str(path))
    except OSError as error:
        from cocite.extras import install_command

        raise ResourceError(
            f"the compiled kernels cannot be loaded: {error}. Install a wheel, or build them in "
            "a clone: pip install . ; or let Numba compile them on first use: set COCITE_JIT=1, "
            f"and run {install_command('jit')}"
        ) from None
    ctypes.c_int64.in_dll(found, "cocite_head").value = object.__basicsize__
    table = (ctypes.c_void_p * len(DTYPES)).in_dll(found, "cocite_types")
    table[:] = [id(dtype) for dtype in DTYPES]
    return found


def library_digest() -> str:
    """Return the digest of the sources from which the library was built."""
    return bytes((ctypes.c_char * 16).in_dll(library(), "cocite_digest").raw).decode()


def _passed_as(kind: Number | Array | None) -> Any:
    if kind is None:
        return ctypes.c_void_p
    return _C[kind.dtype] if isinstance(kind, Number) else ctypes.py_object


class _Entry:
    """One signature of a kernel in the library."""

    def __init__(self, name: str, signature: Signature) -> None:
        self.arguments = signature.arguments
        self.kinds = tuple(flat(self.arguments))
        self.call = library()[signature.symbol(name)]
        self.call.argtypes = [ctypes.c_void_p, *map(_passed_as, self.kinds)]
        self.call.restype = ctypes.c_int32
        returns = [_C[each.dtype] for each in signature.returns]
        self.room: Any = returns[0] if returns else None
        self.fields = tuple(f"n{i}" for i in range(len(returns))) if len(returns) > 1 else ()
        if self.fields:
            found = list(zip(self.fields, returns, strict=True))
            self.room = type("_Room", (ctypes.Structure,), {"_fields_": found})

    def takes(self, types: tuple[type, ...]) -> bool:
        """Return whether the signature accepts these types. The library checks arrays."""
        return len(types) == len(self.kinds) and all(map(_is_of, types, self.kinds))


def _is_of(found: type, kind: Number | Array | None) -> bool:
    if kind is None:
        return found is type(None)
    if isinstance(kind, Array):
        return issubclass(found, np.ndarray)
    if issubclass(found, np.generic):
        return np.dtype(found) == kind.dtype
    return found is _PLAIN.get(kind.dtype)


def _failure(name: str) -> Exception:
    """Return the error for a nonzero status, which means an invalid index in checked kernels."""
    if "-checked" in library_path().name:
        return IndexError(f"{name}: an index is out of bounds")
    return MemoryError(f"there is not enough memory left for {name}")


class Kernel:
    """A compiled function. Thread-safe."""

    def __init__(self, function: Callable[..., Any], variables: Variables) -> None:
        update_wrapper(self, function)
        self._variables = variables
        self._name = f"{self.__module__.rpartition('.')[2]}.{self.__name__}"
        self._entries: list[_Entry] | None = None
        self._tuples: tuple[int, ...] = ()
        """Positions of tuples among the arguments, in descending order."""
        self._plans: dict[tuple[type, ...], tuple[list[int], list[_Entry]]] = {}
        """For the argument types, tuples flattened: positions of NumPy numbers, and entries."""

    def __call__(self, *args: Any) -> Any:
        passed: Any = args
        for place in self._tuples:
            if len(args) > place and isinstance(args[place], tuple):
                passed = (*passed[:place], *args[place], *passed[place + 1 :])
        plan = self._plans.get(tuple(map(type, passed)))
        if plan is not None:
            places, entries = plan
            if places:
                passed = list(passed)
                for place in places:
                    passed[place] = passed[place].item()
            for entry in entries:
                matches, found = self._run(entry, passed)
                if matches:
                    return found
        return self._checked(args)

    def _run(self, entry: _Entry, passed: Sequence[Any]) -> tuple[bool, Any]:
        """Return whether the arrays match the declaration, and the kernel's result."""
        room = None
        if entry.room is None:
            status = entry.call(None, *passed)
        else:
            room = entry.room()
            status = entry.call(ctypes.byref(room), *passed)
        if status:
            if status == MISMATCH:
                return False, None
            raise _failure(self._name)
        if room is None:
            return True, None
        if entry.fields:
            return True, tuple(getattr(room, field) for field in entry.fields)
        return True, room.value

    def _checked(self, args: tuple[Any, ...]) -> Any:
        """Check all arguments, and remember how to pass arguments of these types."""
        entries = self._entries or self._bind()
        for entry in entries:
            passed: list[Any] = []
            if _fits(args, entry.arguments, passed):
                matches, found = self._run(entry, passed)
                if matches:
                    types = tuple(map(type, _without_tuples(args)))
                    if taking := [each for each in entries if each.takes(types)]:
                        numbers = [i for i, t in enumerate(types) if issubclass(t, np.generic)]
                        self._plans[types] = numbers, taking
                    return found
        raise TypeError(self._refusal(args))

    def _bind(self) -> list[_Entry]:
        found = [_Entry(self._name, s) for s in signatures(self.__wrapped__, self._variables)]
        one = enumerate(found[0].arguments)
        tuples = [place for place, kind in one if kind is not None and not _is_leaf(kind)]
        self._tuples = tuple(reversed(tuples))
        self._entries = found
        return found

    def _refusal(self, args: tuple[Any, ...]) -> str:
        found = ", ".join(map(_described, args))
        taken = ", ".join(
            f"{name}: {kind}" for name, kind in self.__wrapped__.__annotations__.items()
        )
        where = f"{self.__module__}.{self.__name__}"
        chosen = " or ".join(map(str, self._variables.values()))
        return f"{where} was given ({found}), and takes ({taken}), where {chosen}"


def _fits(values: tuple[Any, ...], kinds: tuple[Type, ...], passed: list[Any]) -> bool:
    """Return whether the arguments have these types; append their values to ``passed``."""
    if len(values) != len(kinds):
        return False
    for value, kind in zip(values, kinds, strict=True):
        if isinstance(kind, Array):
            if not isinstance(value, np.ndarray) or value.dtype != kind.dtype:
                return False
            dtype = np.dtype(kind.dtype)
            # Unpickled arrays have their own type object, which the library does not recognize.
            passed.append(value if value.dtype is dtype else value.view(dtype))
        elif isinstance(kind, Number):
            number = _number(value, kind.dtype)
            if number is None:
                return False
            passed.append(number)
        elif kind is None:
            if value is not None:
                return False
            passed.append(None)
        elif not isinstance(value, tuple) or not _fits(value, _items(kind), passed):
            return False
    return True


_ENDS = {
    name: (int(np.iinfo(name).min), int(np.iinfo(name).max))
    for name in NUMBERS.values()
    if "int" in name
}
"""The least and the largest whole number of a type."""


def _is_leaf(kind: Type) -> bool:
    return isinstance(kind, Number | Array)


def _without_tuples(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple):
            yield from _without_tuples(value)
        else:
            yield value


def _items(kind: Any) -> tuple[Type, ...]:
    return kind.items if isinstance(kind, Struct) else kind


def _number(value: Any, dtype: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if dtype == "bool":
        return value if isinstance(value, bool) else None
    if dtype.startswith("float"):
        return float(value) if isinstance(value, float | int) else None
    if not isinstance(value, int):
        return None
    low, high = _ENDS[dtype]
    return value if low <= value <= high else None


def _described(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_described, value))})"
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    flags = "" if value.flags.c_contiguous else ", not contiguous"
    flags += "" if value.flags.aligned else ", not aligned"
    return f"{value.dtype}[{value.ndim}]{flags}{'' if value.flags.writeable else ', read-only'}"


def _plain(function: Callable[..., Any]) -> Any:
    return function


def _kernel(*cases: Any, **choices: tuple[str, ...]) -> Any:
    if len(cases) == 1 and callable(cases[0]):
        return Kernel(cases[0], Variables((), {}))
    return partial(Kernel, variables=Variables(cases, choices))


def _only_compiled(*args: Any) -> Any:
    raise TypeError("only compiled kernels can call this function")


if JIT:
    from cocite.kernels import _jit as made
else:
    made = None
kernel: Any = made.kernel if made else _kernel
shared: Any = made.shared if made else _kernel
helper: Any = made.helper if made else _plain
prefetch: Any = made.prefetch if made else _only_compiled
prefetch_at: Any = made.prefetch_at if made else _only_compiled
word_at: Any = made.word_at if made else _only_compiled
long_at: Any = made.long_at if made else _only_compiled
leading_zeros: Any = made.leading_zeros if made else _only_compiled
ones: Any = made.ones if made else _only_compiled
