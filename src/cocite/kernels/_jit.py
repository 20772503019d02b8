"""How kernels are compiled: one decorator, the prefetch hint, and words by their address.

Numba's own cache looks at the file of a kernel only, and these inline helpers from other files;
the compiled code lies in a folder named after a digest of the kernels' source, in the user's cache
(``XDG_CACHE_HOME``), and a changed helper is a new folder. Where none can be written, kernels
are compiled for every process.

Unsigned integers need care: Numba promotes ``uint32 op uint32`` to ``uint64`` and
``uint64 op int literal`` to ``float64``. Kernels therefore keep their constants typed
and write the truncation out where 32 bits are meant.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

__all__ = ["helper", "kernel", "prefetch", "word_at"]


def _cache_folder() -> str:
    digest = blake2b(f"{numba.__version__}".encode(), digest_size=8)
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "cocite", f"kernels-{digest.hexdigest()}")


_CACHE = os.environ.get("NUMBA_CACHE_DIR") or _cache_folder()


def _compile(function: Any, **options: Any) -> Any:
    """Numba's decorator with our cache folder, and without a cache where it cannot be used."""
    options |= {"nogil": True, "error_model": "numpy"}
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = _CACHE
    try:
        return numba.njit(cache=True, **options)(function)
    except (RuntimeError, OSError):
        return numba.njit(**options)(function)
    finally:
        numba.config.CACHE_DIR = before


def kernel(function: Any) -> Any:
    """Compile on first use, cache on disk, release the interpreter lock."""
    return _compile(function)


def helper(function: Any) -> Any:
    """A piece of kernels: always compiled into its caller, which saves passing the arrays."""
    return _compile(function, forceinline=True)


@intrinsic
def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    signature = types.void(array, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        view = context.make_array(sig.args[0])(context, builder, args[0])
        address = builder.gep(view.data, [args[1]])
        byte_pointer = ir.PointerType(ir.IntType(8))
        number = ir.IntType(32)
        hint = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte_pointer, number, number, number]),
            "llvm.prefetch.p0",
        )
        # read, keep in all cache levels, data
        flags = [number(0), number(3), number(1)]
        builder.call(hint, [builder.bitcast(address, byte_pointer), *flags])
        return context.get_dummy_value()

    return signature, codegen


@numba.njit(inline="always")
def prefetch(array: Any, index: Any) -> None:
    """Ask for the cache line of ``array[index]``; a hint, never a fault."""
    _prefetch(array, index)


prefetch = cast(Any, prefetch)


@intrinsic
def _word_at(typing_context: Any, address: Any, index: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = builder.inttoptr(args[0], ir.PointerType(ir.IntType(32)))
        return builder.load(builder.gep(words, [args[1]]))

    return types.uint32(types.uint64, types.uint64), codegen


@numba.njit(inline="always")
def word_at(address: Any, index: Any) -> Any:
    """The uint32 number ``index`` from ``address`` on, both uint64.

    For kernels that read a number of mapped files, which is not known when they are compiled: files
    of different numbers would be different types. Who calls them keeps the files mapped.
    """
    return _word_at(address, index)


word_at = cast(Any, word_at)
