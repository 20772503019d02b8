"""Object code of a kernel that runs without Numba, from what Numba has compiled.

Of the module that Numba makes of a kernel stays the function itself, as Numba's own code calls it,
and what it calls: not the entry by which Python does. Kernels that allocate arrays ask Numba's
runtime for memory; two functions stand in its place here, with a block from ``malloc`` for each
array:

    references, destructor, its argument, address, size, allocator, padding, items...

So the code needs nothing but the C library. What needs more is not kept.

Cost: a tenth of what compiling a kernel takes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import types

from cocite.compiled.native import NOTHING, NUMBERS, Kinds

_C = {"memset", "memcpy", "memmove", "malloc", "free", "log", "exp", "pow", "sqrt", "log2", "log1p"}
_C |= {"expm1", "floor", "ceil", "rint", "fmod", "ldexp", "frexp", "round", "trunc", "fabs"}
_HEAD = 64
"""Bytes before the items."""


def kinds_of(found: Any) -> Kinds:
    """Numba's types of arguments, as ``native.kinds`` names them; "" for one that it does not."""
    return tuple(map(_kind_of, found))


def _kind_of(found: Any) -> Any:
    if type(found) is types.Array:
        name = str(found.dtype)
        if found.aligned and name in NUMBERS:
            return f"{name}[{found.ndim}{found.layout}{'w' if found.mutable else 'r'}]"
    if type(found) in (types.Tuple, types.UniTuple):
        return kinds_of(found)
    return str(found) if str(found) in {*NUMBERS, NOTHING} else ""


def _known(kinds: Kinds) -> bool:
    return all(_known(kind) if isinstance(kind, tuple) else kind for kind in kinds)


def object_of(compiled: Any) -> tuple[str, list[str], bytes] | None:
    """The function's name, what it returns, and object code; None if it cannot be called so."""
    back, entry = compiled.signature.return_type, compiled.fndesc.llvm_func_name
    returns = [] if back == types.none else list(kinds_of(back if _several(back) else (back,)))
    if not _known(kinds_of(compiled.signature.args)) or not set(returns) <= set(NUMBERS):
        return None
    library = compiled.library
    module = library._get_module_for_linking().clone()
    module.link_in(llvm.parse_assembly(_runtime()))
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name == entry else "internal"
    machine = library.codegen._tm
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_module_pass_manager()
    if not hasattr(passes, "add_global_dead_code_eliminate_pass"):
        return None  # llvmlite before 0.45: Numba runs all kernels then
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    needs = {function.name for function in module.functions if function.is_declaration}
    if any(name not in _C and not name.startswith("llvm.") for name in needs):
        return None
    return entry, returns, machine.emit_object(module)


def _several(found: Any) -> bool:
    return type(found) in (types.Tuple, types.UniTuple)


@cache
def _runtime() -> str:
    """What allocates and frees arrays, as text: ``NRT_MemInfo_alloc_aligned`` and
    ``NRT_MemInfo_call_dtor``.
    """
    module = ir.Module()
    module.triple = llvm.get_process_triple()
    word, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
    malloc = ir.Function(module, ir.FunctionType(pointer, [word]), "malloc")
    free = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer]), "free")

    kind = ir.FunctionType(pointer, [word, ir.IntType(32)])
    function = ir.Function(module, kind, "NRT_MemInfo_alloc_aligned")
    size, align = function.args
    build = ir.IRBuilder(function.append_basic_block())
    align = build.zext(align, word)
    block = build.call(malloc, [build.add(size, build.add(align, word(_HEAD)))])
    with build.if_then(build.icmp_unsigned("!=", block, pointer(None))):
        begin = build.add(build.ptrtoint(block, word), build.add(align, word(_HEAD - 1)))
        begin = build.and_(begin, build.neg(align))
        cells = build.bitcast(block, word.as_pointer())
        for number, cell in enumerate((word(1), word(0), word(0), begin, size, word(0))):
            build.store(cell, build.gep(cells, [word(number)]))
    build.ret(block)

    kind = ir.FunctionType(ir.VoidType(), [pointer])
    function = ir.Function(module, kind, "NRT_MemInfo_call_dtor")
    build = ir.IRBuilder(function.append_basic_block())
    build.call(free, [function.args[0]])
    build.ret_void()
    return str(module)
