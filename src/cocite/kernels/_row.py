"""One row onto another as one vector operation, whatever its lanes.

    row_sum(into, at, rows, source, lanes)      into[at + l] += rows[source + l]     l = 0, 1, ...

and ``row_min``, ``row_max`` alike. ``lanes`` is any tuple with an entry a lane: its length is part
of its type, hence known to the compiler. A loop over lanes that is written out in Python is
compiled to as many scalar steps, because the two arrays might overlap; at 16 lanes of 32 bits
that takes two to three times as long.

Arrays are flat; ``into`` may be of a wider float type than ``rows``. Where a value of ``rows`` is
not a number, ``row_min`` and ``row_max`` keep what is in ``into``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

Combine = Callable[[Any, Any, Any, bool], Any]


def _add(builder: Any, old: Any, new: Any, floating: bool) -> Any:
    return builder.fadd(old, new) if floating else builder.add(old, new)


def _smaller(builder: Any, old: Any, new: Any, floating: bool) -> Any:
    compare = builder.fcmp_ordered if floating else builder.icmp_unsigned
    return builder.select(compare("<", new, old), new, old)


def _larger(builder: Any, old: Any, new: Any, floating: bool) -> Any:
    compare = builder.fcmp_ordered if floating else builder.icmp_unsigned
    return builder.select(compare(">", new, old), new, old)


def _vector_at(context: Any, builder: Any, kind: Any, array: Any, index: Any, lanes: int) -> Any:
    """A pointer to ``lanes`` elements of ``array`` from ``index`` on."""
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
            # A row need not lie on a boundary of its own size.
            old = builder.load(target, align=wide.dtype.bitwidth // 8)
            new = builder.load(origin, align=narrow.dtype.bitwidth // 8)
            if wide.dtype != narrow.dtype:
                new = builder.fpext(new, old.type)
            result = combine(builder, old, new, isinstance(wide.dtype, types.Float))
            builder.store(result, target, align=wide.dtype.bitwidth // 8)
            return context.get_dummy_value()

        return signature, codegen

    return intrinsic(operation)


row_sum = cast(Any, _row_operation(_add))
row_min = cast(Any, _row_operation(_smaller))
row_max = cast(Any, _row_operation(_larger))
