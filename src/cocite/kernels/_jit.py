"""Numba decorators and intrinsics, for the build and for debugging (``COCITE_JIT=1``).

Numba promotes ``uint32 op uint32`` to ``uint64``, and ``uint64 op int literal`` to ``float64``.
Kernels therefore use typed constants, and truncate explicitly to 32 bits.
"""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_LITERALS = types.IntegerLiteral, types.BooleanLiteral
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def kernel(*cases: Any, **choices: tuple[str, ...]) -> Any:
    """Compile a function on its first call. The compiled code releases the interpreter lock."""
    return _declared(cases, choices, {})


def shared(*cases: Any, **choices: tuple[str, ...]) -> Any:
    """Mark a helper that Python code also calls."""
    return _declared(cases, choices, {"forceinline": True})


def helper(function: Any) -> Any:
    """Mark a function that only kernels call, and always inline it."""
    return without_entry(_njit(function, forceinline=True))


def without_entry(compiled: Any) -> Any:
    """Skip the Python entry point, which would take three quarters of the compile time."""
    compiled.targetoptions["no_cpython_wrapper"] = True
    # The dispatcher must not call compiled versions, which have no entry point.
    compiled.add_overload = lambda found: compiled.overloads.update(
        {tuple(found.signature.args): found}
    )
    return compiled


def _declared(cases: Any, choices: dict[str, tuple[str, ...]], options: dict[str, Any]) -> Any:
    if len(cases) == 1 and callable(cases[0]):
        return _known(cases[0], ((), {}), options)
    return lambda function: _known(function, (cases, choices), options)


def _known(function: Any, variables: tuple[Any, Any], options: dict[str, Any]) -> Any:
    compiled = _njit(function, **options)
    compiled.variables = variables
    return compiled


def _njit(function: Any, **options: Any) -> Any:
    """Apply Numba's decorator, and treat literal arguments as their types. If a variable is
    initialized with 0, Numba gives it a literal type until its next assignment. A helper with such
    an argument would be compiled twice, for the literal and for integers.
    """
    compiled = numba.njit(**_OPTIONS, **options)(function)
    resolve = compiled.get_call_template

    def resolve_plain(args: Any, kws: Any) -> Any:
        plain = (types.unliteral(a) if isinstance(a, _LITERALS) else a for a in args)
        return resolve(tuple(plain), kws)

    compiled.get_call_template = resolve_plain
    return compiled


def _hint(builder: Any, address: Any) -> None:
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


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of ``array[index]``. Invalid addresses never fault."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        view = context.make_array(sig.args[0])(context, builder, args[0])
        _hint(builder, builder.gep(view.data, [args[1]]))
        return context.get_dummy_value()

    return types.void(array, types.uint64), codegen


@intrinsic
def prefetch_at(typing_context: Any, address: Any, index: Any) -> Any:
    """Prefetch the word that ``word_at`` reads."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = builder.inttoptr(args[0], ir.PointerType(ir.IntType(32)))
        _hint(builder, builder.gep(words, [args[1]]))
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), codegen


@intrinsic
def word_at(typing_context: Any, address: Any, index: Any) -> Any:
    """Return element ``index`` of the uint32 array at ``address``; both arguments are uint64.

    Kernels that read several mapped files use addresses, because tuples of different lengths are
    different types. The caller keeps the files mapped.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = builder.inttoptr(args[0], ir.PointerType(ir.IntType(32)))
        return builder.load(builder.gep(words, [args[1]]))

    return types.uint32(types.uint64, types.uint64), codegen


@intrinsic
def long_at(typing_context: Any, address: Any, offset: Any) -> Any:
    """Return the uint64, possibly unaligned, ``offset`` bytes after ``address`` (both uint64)."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        where = builder.add(args[0], args[1])
        return builder.load(builder.inttoptr(where, ir.PointerType(ir.IntType(64))), align=1)

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def ones(typing_context: Any, word: Any) -> Any:
    """Count the 1 bits of a uint64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@intrinsic
def leading_zeros(typing_context: Any, word: Any) -> Any:
    """Count the leading zero bits of a uint64 (64 for 0)."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen
