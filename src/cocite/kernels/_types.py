"""Types of arguments and results of kernels, for annotations.

``U32`` is the NumPy type uint32. ``U32s`` is a contiguous array of one dimension, ``U32s2`` of two.
The kernel writes to ``OutU32s``; other arrays may be read-only, such as mapped files. ``tuple[U64s,
U32s]`` is a tuple of arrays.

``C``, ``D``, ``T`` and ``W`` are type variables, and ``Ts`` is an array of ``T``.
``@kernel(T=("F32", "F64"))`` compiles a kernel for both types; ``@kernel({"D": "F64", "W": "F32s"},
{"D": "U32", "W": "None"})`` for both cases. To mypy they are ``Any``: kernels compute as NumPy
does.
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
