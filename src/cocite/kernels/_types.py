"""Types of kernel arguments and results, for annotations.

``U32`` is NumPy's uint32, ``U32s`` a contiguous one-dimensional array of it, and ``U32s2`` a
two-dimensional one. Kernels write to arrays marked ``Out``, as in ``OutU32s``; others may be
read-only. ``tuple[U64s, U32s]`` is a tuple of arrays.

``C``, ``D``, ``T`` and ``W`` are type variables, and ``Ts`` is an array of ``T``.
``@kernel(T=("F32", "F64"))`` compiles a kernel for both types; ``@kernel({"D": "F64", "W": "F32s"},
{"D": "U32", "W": "None"})`` compiles it for both cases.

To mypy, all types are ``Any``, because kernels follow NumPy's rules for arithmetic.
"""

from __future__ import annotations

from typing import Any

Bool = Any
Bools = Any
OutBools = Any
U8 = Any
U8s = Any
OutU8s = Any
U8s2 = Any
OutU8s2 = Any
U16 = Any
OutU16s = Any
OutU16s2 = Any
U32 = Any
U32s = Any
OutU32s = Any
U32s2 = Any
OutU32s2 = Any
U32s4 = Any
OutU32s4 = Any
U64 = Any
U64s = Any
OutU64s = Any
U64s2 = Any
U64s3 = Any
OutU64s2 = Any
OutI32s = Any
I64 = Any
I64s = Any
OutI64s = Any
OutI64s2 = Any
F32 = Any
F32s = Any
OutF32s = Any
F32s2 = Any
F64 = Any
F64s = Any
OutF64s = Any
F64s2 = Any
OutF64s2 = Any
OutF64s3 = Any
T = Any
Ts = Any
OutTs = Any
Ts2 = Any
OutTs2 = Any
C = Any
Cs = Any
D = Any
Ds = Any
OutDs = Any
W = Any
