"""Kernels run from the object code that is kept, without Numba.

Numba takes a third of a second to load, and a question a few milliseconds. Beside what Numba keeps
of a kernel and its types lies an object file of the same machine code (``kernels/_numba.py``).
LLVM links it into the process, which takes a few milliseconds, and ctypes calls it, without the
interpreter's lock.

Arguments are arrays, numbers, None, and tuples of these; what is returned is a number, some
numbers, or nothing. A kernel is called as Numba's own code calls it: a place for what it returns,
one for what went wrong, and then the arguments, arrays flattened to

    0, 0, size, bytes an item, address, shape..., strides...

and 0 comes back if all is well. Where a variable ``NUMBA_...`` of the environment says how to
compile, nothing of this is used, nor made.

Files lie in the folder of their version, are checked and belong to whoever runs them, as all that
is kept (``compiled/cache.py``), and are named after kernel, types and processor. Object code that
needs more than the C library is not kept, but that there is none, so linking cannot fail for want
of a name.

Cost: 1 to 3 ms to link a kernel, about 20 microseconds a call.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
from functools import cache
from hashlib import blake2b
from typing import Any

import numpy as np

from cocite.compiled import cache as kept
from cocite.compiled.cache import place

NUMBERS: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "int8": ctypes.c_int8,
    "uint8": ctypes.c_uint8,
    "int16": ctypes.c_int16,
    "uint16": ctypes.c_uint16,
    "int32": ctypes.c_int32,
    "uint32": ctypes.c_uint32,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
"""Numbers by the names of NumPy's types and Numba's."""

Kinds = tuple[Any, ...]

NOTHING = "none"
"""The kind of None, which is passed as a pointer to nothing."""

NONE: tuple[str, list[str], bytes] = "", [], b""
"""What is kept of a kernel that cannot be called so."""

_log = logging.getLogger("cocite")


@cache
def is_enabled() -> bool:
    """Whether kernels may run so in this process."""
    return not any(name.startswith("NUMBA_") for name in os.environ)


def kinds(args: tuple[Any, ...]) -> Kinds | None:
    """What Numba tells arguments by; None if there is one that is not called so."""
    found = tuple(map(_kind, args))
    return None if None in found else found


def _kind(value: Any) -> Any:
    kind = type(value)
    if kind is int:
        return "int64" if -(1 << 63) <= value < 1 << 63 else None
    if kind is float:
        return "float64"
    if kind is bool:
        return "bool"
    if isinstance(value, np.ndarray):
        flags, dtype = value.flags, value.dtype
        if not (flags.aligned and dtype.isnative and dtype.name in NUMBERS):
            return None
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return f"{dtype.name}[{value.ndim}{order}{'w' if flags.writeable else 'r'}]"
    if isinstance(value, np.generic):
        return value.dtype.name if value.dtype.name in NUMBERS else None
    if kind is tuple:
        return kinds(value)
    return NOTHING if value is None else None


@cache
def _processor() -> str:
    """What machine code is made for."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return repr((llvm.get_process_triple(), llvm.get_host_cpu_name(), features))


def name_of(function: str, kinds: Kinds) -> str:
    """The name of a file."""
    digest = blake2b(repr((kinds, _processor())).encode(), digest_size=8)
    return f"{function}-{digest.hexdigest()}.object"


def cache_key(function: str, kinds: Kinds) -> bytes | None:
    """What is kept, if it is whole and ours."""
    return kept.load(place(), name_of(function, kinds))


def packed(symbol: str, returns: list[str], code: bytes) -> bytes:
    """What a file holds: the name of the function, what it returns, its object code."""
    return json.dumps({"symbol": symbol, "returns": returns}).encode() + b"\n" + code


def load(function: str, kinds: Kinds) -> Native | None:
    """The kernel for these types; None if there is none that is whole and ours."""
    data = cache_key(function, kinds)
    if data is None:
        return None
    head, _, code = data.partition(b"\n")
    try:
        about = json.loads(head)
        if not about["symbol"]:
            return None
        return Native(function, kinds, about["symbol"], about["returns"], code)
    except (RuntimeError, ValueError, KeyError, TypeError) as error:
        # Whole, and nothing that is understood: Numba has it, or compiles it anew.
        _log.debug(f"{function} is not run from its object code: {error}")
        return None


class Native:
    """A kernel for some types. Threads may share it."""

    def __init__(
        self, function: str, kinds: Kinds, symbol: str, returns: list[str], code: bytes
    ) -> None:
        from llvmlite.binding import JITLibraryBuilder

        library = JITLibraryBuilder().add_object_img(code).add_current_process()
        name = name_of(function, kinds)
        self._linked = library.export_symbol(symbol).link(_linker(), name)  # as long as we are
        types = [ctypes.c_void_p, ctypes.c_void_p]
        for kind in kinds:
            types += _flat_types(kind)
        self._call = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(self._linked[symbol])
        fields = [(f"n{i}", NUMBERS[kind]) for i, kind in enumerate(returns)]
        self._returns: Any = type("_Returns", (ctypes.Structure,), {"_fields_": fields})
        self._names, self._function = [name for name, _ in fields], function

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """What the kernel returns; raises ``MemoryError`` if it cannot allocate an array."""
        flat: list[Any] = []
        for value in args:
            _flatten(value, flat)
        # Room for a pointer, too, which is what Numba returns for nothing.
        room, wrong = (ctypes.c_uint64 * (1 + len(self._names)))(), ctypes.c_void_p()
        if self._call(ctypes.byref(room), ctypes.byref(wrong), *flat):
            raise MemoryError(f"there is not enough memory left for {self._function}")
        if not self._names:
            return None
        told = self._returns.from_buffer(room)
        found = tuple(getattr(told, name) for name in self._names)
        return found if len(found) > 1 else found[0]


def _flat_types(kind: Any) -> list[Any]:
    if isinstance(kind, tuple):
        return [each for inner in kind for each in _flat_types(inner)]
    if kind == NOTHING:
        return [ctypes.c_void_p]
    if not kind.endswith("]"):
        return [NUMBERS[kind]]
    dimensions = int(kind.partition("[")[2][:-3])
    head = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    return head + [ctypes.c_int64] * (2 * dimensions)


def _flatten(value: Any, flat: list[Any]) -> None:
    if isinstance(value, np.ndarray):
        address = value.__array_interface__["data"][0]
        flat += (None, None, value.size, value.itemsize, address, *value.shape, *value.strides)
    elif isinstance(value, tuple):
        for each in value:
            _flatten(each, flat)
    else:
        flat.append(value.item() if isinstance(value, np.generic) else value)


@cache
def _linker() -> Any:
    """LLVM's, of this process."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler()
