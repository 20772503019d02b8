"""How kernels are compiled by Numba: what stands behind the three decorators of
``kernels/_jit.py``, the prefetch hint, words by their address, and the bits of a word. Nothing else
imports this, and that only where there is something to compile, or much to compute.

Compiled code is kept for other processes at the place that ``compiled`` names, a file for each
kernel and its types. Numba's own cache keeps an index a kernel, which two processes that write at
once may spoil, and knows nothing of inline helpers from other files nor of directories that others
can write to; so :class:`_CacheEntry` stands in its place, by the same three methods. It also keeps
object code, which a process runs that does not load Numba.

Helpers are compiled into kernels and nowhere else: nothing is kept of them, and without the entry
by which Python would call them they compile in three quarters of the time.

Unsigned integers need care: Numba promotes ``uint32 op uint32`` to ``uint64`` and
``uint64 op int literal`` to ``float64``. Kernels therefore keep their constants typed
and write the truncation out where 32 bits are meant.

Object code is made from what Numba has compiled. Of the module that Numba makes of a kernel stays
the function itself, as Numba's own code calls it, and what it calls: not the entry by which Python
does. Kernels that allocate arrays ask Numba's runtime for memory; two functions stand in its place,
with a block from ``malloc`` for each array:

    references, destructor, its argument, address, size, allocator, padding, items...

So the code needs nothing but the C library. What needs more is not kept.

Cost of object code: a tenth of what compiling a kernel takes.
"""

from __future__ import annotations

import functools
import logging
import pickle
from hashlib import blake2b
from typing import Any, cast

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import cgutils, event, types
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.extending import intrinsic, typeof_impl

from cocite.compiled import cache, native
from cocite.compiled.cache import VARIABLE, place
from cocite.compiled.clock import compiling
from cocite.compiled.native import NOTHING, NUMBERS, Kinds
from cocite.resources import loading

_log = logging.getLogger("cocite")
_report: list[OSError] = []
"""The first kernel that could not be kept, if one could not."""
_LITERALS = types.IntegerLiteral, types.BooleanLiteral
_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def kernel(function: Any) -> Any:
    """Compile on first use, keep on disk, release the interpreter lock."""
    return _keep(_njit(function))


def shared(function: Any) -> Any:
    """A helper that Python calls, too."""
    return _keep(_njit(function, forceinline=True))


def helper(function: Any) -> Any:
    """A piece of kernels: always compiled into its caller, which saves passing the arrays.

    Python cannot call it: see ``shared``.
    """
    compiled = _njit(function, forceinline=True, no_cpython_wrapper=True)
    # What is compiled has no entry from Python: its dispatcher must not find it.
    compiled.add_overload = lambda found: compiled.overloads.update(
        {tuple(found.signature.args): found}
    )

    def refuse(*args: Any, **kws: Any) -> Any:
        raise TypeError(f"{function.__name__} is a helper of kernels; for Python it is @shared")

    compiled._compile_for_args = refuse
    return compiled


def _keep(compiled: Any) -> Any:
    """Keep what is compiled, if the sources that name the folder are all there is in it."""
    if compiled.py_func.__module__.startswith("cocite.kernels."):
        compiled._cache = _CacheEntry(compiled.py_func)
    return compiled


def _njit(function: Any, **options: Any) -> Any:
    """Numba's decorator, but that a literal argument is one of its type.

    A variable that begins as 0 is a literal to Numba until its next value is seen, and a helper
    that takes it would be compiled once for 0 and once for integers.
    """
    compiled = numba.njit(**_OPTIONS, **options)(function)
    resolve = compiled.get_call_template

    def resolve_plain(args: Any, kws: Any) -> Any:
        plain = (types.unliteral(a) if isinstance(a, _LITERALS) else a for a in args)
        return resolve(tuple(plain), kws)

    compiled.get_call_template = resolve_plain
    return compiled


class _CacheEntry(NullCache):
    """The compiled code of one kernel, as Numba's dispatcher asks for it and hands it over."""

    def __init__(self, function: Any) -> None:
        self._function = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for these types; None if that was not, or cannot be read."""
        with loading():
            target_context.refresh()
            data = cache.load(place(), self._name(sig, target_context.codegen()))
            if data is None:
                return None
            try:
                found = CompileResult._rebuild(target_context, *pickle.loads(data))
            except Exception:  # whole, and nothing that is understood: compiled and kept anew
                return None
            if native.is_enabled() and native.cache_key(self._function, kinds_of(sig)) is None:
                self._keep_object(sig, found)
            return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled; where that fails, it is used all the same."""
        self._save(self._name(sig, data.codegen), dumps(data._reduce()))
        if native.is_enabled():
            self._keep_object(sig, data)

    def _keep_object(self, sig: Any, data: Any) -> None:
        """Keep what runs without Numba, or that there is none."""
        found = native.packed(*(object_of(data) or native.NONE))
        self._save(native.name_of(self._function, kinds_of(sig)), found)

    def _save(self, name: str, data: bytes) -> None:
        try:
            cache.save(place(), name, data)
        except OSError as error:
            if not _report:  # the others will not fit either
                _report.append(error)
                where = place().written
                _log.warning(
                    f"compiled kernels cannot be kept in {where}: {error.strerror}; they are "
                    f"compiled anew by every command. {VARIABLE} names another place"
                )

    def _name(self, sig: Any, codegen: Any) -> str:
        digest = blake2b(repr((sig, codegen.magic_tuple())).encode(), digest_size=8)
        return f"{self._function}-{digest.hexdigest()}.nbc"


def know(later: type) -> None:
    """Have kernels know others by what stands for these until Numba is there, and ``made`` them."""
    typeof_impl.register(later)(lambda value, context: typeof_impl(value.made, context))


class _Listener(event.Listener):
    """Tells ``compiled`` what Numba does: kernels begin and end, with passes over them between."""

    def __init__(self) -> None:
        self._depth = 0  # helpers are compiled while their kernel is; one thread at a time

    def on_start(self, found: Any) -> None:
        if found.kind != "numba:compile":
            compiling.tick()
            return
        self._depth += 1
        if self._depth == 1:
            compiling.begin()

    def on_end(self, found: Any) -> None:
        if found.kind == "numba:compile":
            self._depth -= 1
            if self._depth == 0:
                compiling.end()


_listener = _Listener()
for _kind in ("numba:compile", "numba:run_pass"):
    event.register(_kind, _listener)


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
def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    signature = types.void(array, types.uint64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        view = context.make_array(sig.args[0])(context, builder, args[0])
        address = builder.gep(view.data, [args[1]])
        _hint(builder, address)
        return context.get_dummy_value()

    return signature, codegen


@numba.njit(inline="always")
def prefetch(array: Any, index: Any) -> None:
    """Ask for the cache line of ``array[index]``; a hint, never a fault."""
    _prefetch(array, index)


prefetch = cast(Any, prefetch)


@intrinsic
def _prefetch_at(typing_context: Any, address: Any, index: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        words = builder.inttoptr(args[0], ir.PointerType(ir.IntType(32)))
        _hint(builder, builder.gep(words, [args[1]]))
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), codegen


@numba.njit(inline="always")
def prefetch_at(address: Any, index: Any) -> None:
    """The same of the word that ``word_at`` reads."""
    _prefetch_at(address, index)


prefetch_at = cast(Any, prefetch_at)


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


@intrinsic
def _long_at(typing_context: Any, address: Any, offset: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        where = builder.add(args[0], args[1])
        return builder.load(builder.inttoptr(where, ir.PointerType(ir.IntType(64))), align=1)

    return types.uint64(types.uint64, types.uint64), codegen


@numba.njit(inline="always")
def long_at(address: Any, offset: Any) -> Any:
    """The uint64 that begins ``offset`` bytes behind ``address``, both uint64; on no boundary."""
    return _long_at(address, offset)


long_at = cast(Any, long_at)


@intrinsic
def _ones(typing_context: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


@numba.njit(inline="always")
def ones(word: Any) -> Any:
    """How many bits of a uint64 are 1."""
    return _ones(word)


ones = cast(Any, ones)


@intrinsic
def _leading_zeros(typing_context: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


@numba.njit(inline="always")
def leading_zeros(word: Any) -> Any:
    """How many bits above the highest one of a uint64; 64 of 0."""
    return _leading_zeros(word)


leading_zeros = cast(Any, leading_zeros)


# -- object code --------------------------------------------------------------------------

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


@functools.cache
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
