"""Vector operations that Numba lacks: on rows of lanes, and on bit planes.

Arrays might overlap, so Numba compiles loops over lanes to scalar steps. These take two to three
times as long for 16 lanes of 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

LINE = 16
"""Words of a plane (``kernels/minhash_bits.py``)."""
_SPREAD = 32

# -- rows of lanes -----------------------------------------------------------------------

Combine = Callable[[Any, Any, Any, bool], Any]


def _add(builder: Any, old: Any, new: Any, floating: bool) -> Any:
    return builder.fadd(old, new) if floating else builder.add(old, new)


def _preferred(sign: str, builder: Any, old: Any, new: Any, floating: bool) -> Any:
    compare = builder.fcmp_ordered if floating else builder.icmp_unsigned
    return builder.select(compare(sign, new, old), new, old)


def _vector_at(context: Any, builder: Any, kind: Any, array: Any, index: Any, lanes: int) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    vector = ir.VectorType(context.get_data_type(kind.dtype), lanes)
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _row_operation(combine: Combine) -> Any:
    def operation(
        typing_context: Any, into: Any, at: Any, rows: Any, source: Any, lanes: Any
    ) -> Any:
        signature = types.void(into, types.uint64, rows, types.uint64, lanes)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            wide, narrow, count = sig.args[0], sig.args[2], sig.args[4].count
            target = _vector_at(context, builder, wide, args[0], args[1], count)
            origin = _vector_at(context, builder, narrow, args[2], args[3], count)
            # Rows need not be aligned to their size.
            old = builder.load(target, align=wide.dtype.bitwidth // 8)
            new = builder.load(origin, align=narrow.dtype.bitwidth // 8)
            if wide.dtype != narrow.dtype:
                new = builder.fpext(new, old.type)
            result = combine(builder, old, new, isinstance(wide.dtype, types.Float))
            builder.store(result, target, align=wide.dtype.bitwidth // 8)
            return context.get_dummy_value()

        return signature, codegen

    return intrinsic(operation)


row_sum = _row_operation(_add)
row_min = _row_operation(partial(_preferred, "<"))
row_max = _row_operation(partial(_preferred, ">"))


# -- planes of bits ----------------------------------------------------------------------

_BITS32, _BITS64 = ir.IntType(32), ir.IntType(64)
_PLANE = ir.VectorType(_BITS32, LINE)
_FOUND = ir.VectorType(_BITS64, _SPREAD)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, at: Any, vector: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    if at is not None:
        data = builder.gep(data, [at])
    return builder.bitcast(data, vector.as_pointer())


def _splat(builder: Any, value: Any, vector: Any) -> Any:
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(_BITS32, 0))
    zeros = ir.Constant(ir.VectorType(_BITS32, vector.count), None)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


@intrinsic
def differ(typing_context: Any, into: Any, words: Any, at: Any, same: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target = _pointer(context, builder, sig.args[0], args[0], None, _PLANE)
        plane = builder.load(
            _pointer(context, builder, sig.args[1], args[1], args[2], _PLANE), align=4
        )
        apart = builder.xor(plane, _splat(builder, args[3], _PLANE))
        builder.store(builder.or_(builder.load(target, align=4), apart), target, align=4)
        return context.get_dummy_value()

    return types.void(into, words, types.uint64, types.uint32), codegen


@intrinsic
def agree(typing_context: Any, into: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target = _pointer(context, builder, sig.args[0], args[0], None, _PLANE)
        builder.store(builder.not_(builder.load(target, align=4)), target, align=4)
        return context.get_dummy_value()

    return types.void(into), codegen


@intrinsic
def count_in(typing_context: Any, plane: Any, at: Any, carry: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target = _pointer(context, builder, sig.args[0], args[0], args[1], _PLANE)
        rest = _pointer(context, builder, sig.args[2], args[2], None, _PLANE)
        old, new = builder.load(target, align=4), builder.load(rest, align=4)
        builder.store(builder.xor(old, new), target, align=4)
        builder.store(builder.and_(old, new), rest, align=4)
        return context.get_dummy_value()

    return types.void(plane, types.uint64, carry), codegen


@intrinsic
def spread(typing_context: Any, found: Any, at: Any, bits: Any, worth: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target = _pointer(context, builder, sig.args[0], args[0], args[1], _FOUND)
        chosen = builder.bitcast(args[2], ir.VectorType(ir.IntType(1), _SPREAD))
        value = _splat(builder, args[3], _FOUND)
        part = builder.select(chosen, value, ir.Constant(_FOUND, None))
        builder.store(builder.add(builder.load(target, align=8), part), target, align=8)
        return context.get_dummy_value()

    return types.void(found, types.uint64, types.uint32, types.uint64), codegen
