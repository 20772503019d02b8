"""Planes of bits as vectors: 16 words of 32 bits, a cache line, in one operation.

A plane holds one bit of each of 512 numbers: bit i of word w is that of number 32 w + i. ``at`` is
where a plane begins in an array of words.

    differ(into, words, at, same)     into |= words[at : at + 16] ^ same
                                      so a bit of ``into`` is set where a plane differs from the
                                      one word ``same``
    agree(into)                       into = ~into
                                      so a bit is set where all planes were the same
    count_in(plane, at, carry)        adds each bit of ``carry`` to its bit of plane[at : at + 16];
                                      ``carry`` becomes what is to be added to the next plane
    spread(found, at, bits, worth)    found[at + i] += worth, for each bit i that is set in ``bits``

``into`` and ``carry`` are uint32[16], ``found`` is uint64. The same as loops takes five to ten
times as long: the compiler cannot know that arrays do not overlap, and each loop is short.
"""

from __future__ import annotations

from typing import Any, cast

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

_WORDS, _SPREAD = 16, 32
_BITS32, _BITS64 = ir.IntType(32), ir.IntType(64)
_PLANE = ir.VectorType(_BITS32, _WORDS)
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
def _differ(typing_context: Any, into: Any, words: Any, at: Any, same: Any) -> Any:
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
def _agree(typing_context: Any, into: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target = _pointer(context, builder, sig.args[0], args[0], None, _PLANE)
        builder.store(builder.not_(builder.load(target, align=4)), target, align=4)
        return context.get_dummy_value()

    return types.void(into), codegen


@intrinsic
def _count_in(typing_context: Any, plane: Any, at: Any, carry: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target = _pointer(context, builder, sig.args[0], args[0], args[1], _PLANE)
        rest = _pointer(context, builder, sig.args[2], args[2], None, _PLANE)
        old, new = builder.load(target, align=4), builder.load(rest, align=4)
        builder.store(builder.xor(old, new), target, align=4)
        builder.store(builder.and_(old, new), rest, align=4)
        return context.get_dummy_value()

    return types.void(plane, types.uint64, carry), codegen


@intrinsic
def _spread(typing_context: Any, found: Any, at: Any, bits: Any, worth: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target = _pointer(context, builder, sig.args[0], args[0], args[1], _FOUND)
        chosen = builder.bitcast(args[2], ir.VectorType(ir.IntType(1), _SPREAD))
        value = _splat(builder, args[3], _FOUND)
        part = builder.select(chosen, value, ir.Constant(_FOUND, None))
        builder.store(builder.add(builder.load(target, align=8), part), target, align=8)
        return context.get_dummy_value()

    return types.void(found, types.uint64, types.uint32, types.uint64), codegen


differ, agree = cast(Any, _differ), cast(Any, _agree)
count_in, spread = cast(Any, _count_in), cast(Any, _spread)
