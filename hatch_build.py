"""Compile all kernels into one library for each processor, when the package is built.

Numba compiles each kernel of ``src/cocite/kernels`` for the types of its annotations
(``kernels/_types.py``). Of its module remain the function, as Numba's own code calls it, and what
it calls; in C comes an entry before it, which reads NumPy's arrays:

    status = entry(room for what is returned, arguments...)

Kernels that allocate arrays ask Numba's runtime for memory. Functions in C stand in its place. So
the library needs the C library and nothing else.

An object file is kept in ``build/kernels`` for each kernel, named after a digest of what it is made
of; what has not changed is not compiled again. ``python hatch_build.py`` does the same in place.

Cost: 36 s on two cores, of which Numba takes nine tenths; nothing if nothing changed.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import multiprocessing
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

_hook: Any = object
with suppress(ModuleNotFoundError):  # compiling in place needs no hatchling
    _hook = importlib.import_module("hatchling.builders.hooks.plugin.interface").BuildHookInterface

ROOT = Path(__file__).parent
KERNELS = ROOT / "src/cocite/kernels"
OBJECTS = ROOT / "build/kernels"
X86 = "x86-64-v2", "x86-64-v3"


class KernelHook(_hook):  # type: ignore[misc]
    """What hatchling asks for while it builds a wheel, or an editable installation."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what brings a linker, where there is none."""
        return [] if compiler() else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the library for this processor; with ``COCITE_TARGETS=all`` for all levels."""
        everywhere = os.environ.get("COCITE_TARGETS") == "all" and version != "editable"
        chosen = list(targets()) if everywhere else [_host()]
        options = [text for target in chosen for text in ("--target", target)]
        # A process of its own: workers import its module by name, which hatchling's has not.
        subprocess.run([sys.executable, str(Path(__file__)), *options], check=True)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform_tag(everywhere)}"
        build_data["artifacts"] += [f"/src/cocite/kernels/_native-{each}.so" for each in chosen]


def targets() -> tuple[str, ...]:
    """Return the processors that a wheel of this architecture serves."""
    return X86 if platform.machine() in ("x86_64", "AMD64") else (_host(),)


def _host() -> str:
    _find_sources()
    os.environ["COCITE_JIT"] = "0"
    from cocite.kernels._kernel import targets as runs

    return runs()[0]


def _find_sources() -> None:
    """Have modules of the package found here, and in processes that begin after this."""
    if (source := str(ROOT / "src")) not in sys.path:
        sys.path.insert(0, source)


def _platform_tag(everywhere: bool) -> str:
    """Return what pip calls this machine, and machines with its C library if all may run it."""
    name = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    libc, version = platform.libc_ver()
    if everywhere and name.startswith("linux") and libc == "glibc":
        return f"manylinux_{version.replace('.', '_')}_{platform.machine()}"
    return name


# -- what is to be compiled --------------------------------------------------------------


def digest(target: str, checked: bool = False) -> str:
    """Return the digest that the library of these sources has."""
    return _short(repr(_digests(target, checked)).encode())


def _digests(target: str, checked: bool) -> dict[str, str]:
    """Return a digest for each file of kernels: of it, what it imports, and what compiles it."""
    made_by = f"{target} {checked} {version('numba')} {version('llvmlite')}".encode()
    both = [Path(__file__), ROOT / "src/cocite/constants.py"]
    return {
        name: _short(made_by, *(_code(path) for path in [*both, *sorted(_sources(name))]))
        for name in modules()
    }


def _code(path: Path) -> bytes:
    """Return the syntax tree of a file, without positions, comments and docstrings."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            del node.body[0]
    return ast.dump(tree).encode()


def _short(*parts: bytes) -> str:
    found = blake2b(digest_size=8)
    for part in parts:
        found.update(part)
    return found.hexdigest()


def _sources(module: str) -> set[Path]:
    found, waiting = set(), [module]
    while waiting:
        path = KERNELS / f"{waiting.pop()}.py"
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = node.module if isinstance(node, ast.ImportFrom) and node.module else ""
            if name.startswith("cocite.kernels."):
                waiting.append(name.rpartition(".")[2])
    return found | {KERNELS / "_jit.py"}


def modules() -> list[str]:
    """Return the files of kernels, the largest first."""
    found = [path for path in KERNELS.glob("*.py") if not path.name.startswith("_")]
    return [path.stem for path in sorted(found, key=lambda path: -path.stat().st_size)]


def build(target: str, *, checked: bool = False) -> Path:
    """Compile what has changed, link the library beside the kernels, and return its path."""
    OBJECTS.mkdir(parents=True, exist_ok=True)
    path = KERNELS / f"_native-{target}{'-checked' if checked else ''}.so"
    digests, whole = _digests(target, checked), digest(target, checked)
    if path.exists() and whole.encode() in path.read_bytes():
        return path
    missing = {name: each for name, each in digests.items() if not _entries(name, each).exists()}
    if missing:
        print(f"compiling {len(missing)} files of kernels for {target}", file=sys.stderr)
        begin = time.perf_counter()
        _compile_all(missing, target, checked)
        print(f"compiled in {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    text = _HEAD + "".join(_entries(name, each).read_text() for name, each in digests.items())
    source = OBJECTS / f"entries-{whole}.c"
    source.write_text(f'{text}OPEN const char cocite_digest[] = "{whole}";\n')
    objects = (each for name in digests for each in OBJECTS.glob(f"{name}.*-{digests[name]}.o"))
    _link(path, source, sorted(objects))
    return path


def _entries(module: str, digest: str) -> Path:
    """Return the path of the entries of a file's kernels, which are written behind its objects."""
    return OBJECTS / f"{module}-{digest}.c"


def _environment(target: str, checked: bool) -> None:
    """Have Numba compile for a processor, in processes that begin after this."""
    _find_sources()
    os.environ |= {
        "COCITE_JIT": "1",
        "NUMBA_CPU_NAME": _processor(target),
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_DISABLE_INTEL_SVML": "1",
        "NUMBA_BOUNDSCHECK": str(int(checked)),
    }


def _compile_all(digests: dict[str, str], target: str, checked: bool) -> None:
    _environment(target, checked)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        for task in [pool.submit(_compile, *each, target) for each in digests.items()]:
            task.result()


def _link(path: Path, source: Path, objects: list[Path]) -> None:
    command = compiler() or [sys.executable, "-m", "ziglang", "cc"]
    strict = ["-dynamiclib"] if sys.platform == "darwin" else ["-shared", "-Wl,--no-undefined"]
    beside, listed = path.with_suffix(f".{os.getpid()}.tmp"), source.with_suffix(".txt")
    listed.write_text("\n".join(f'"{each}"' for each in [source, *objects]))
    options = ["-O2", "-s", "-fPIC", "-fvisibility=hidden", *strict]
    try:
        subprocess.run([*command, *options, "-o", str(beside), f"@{listed}", "-lm"], check=True)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def compiler() -> list[str]:
    """Return the command of a C compiler, empty if there is none."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and shutil.which(name):
            return [name]
    return []


# -- compiling ---------------------------------------------------------------------------


def _compile(module: str, digest: str, target: str) -> None:
    """Compile a file's kernels, and write their entries, in a process of its own."""
    from cocite.kernels._jit import without_entry
    from cocite.kernels._kernel import Variables, signatures

    found, entries = importlib.import_module(f"cocite.kernels.{module}"), []
    for name, value in vars(found).items():
        if not hasattr(value, "variables") or value.py_func.__module__ != found.__name__:
            continue
        without_entry(value)
        for each in signatures(value.py_func, Variables(*value.variables)):
            symbol = each.symbol(f"{module}.{name}")
            code = _object_of(f"kernel_{symbol}", _compiled(value, each), target)
            (OBJECTS / f"{module}.{symbol}-{digest}.o").write_bytes(code)
            entries.append(_entry(symbol, each))
    _entries(module, digest).write_text("".join(entries))


def _compiled(dispatcher: Any, signature: Any) -> Any:
    """Return what Numba makes of a kernel for a signature; ``TypeError`` if it returns another."""
    types = tuple(map(_numba_type, signature.arguments))
    dispatcher.compile(types)
    compiled = dispatcher.overloads[types]
    back = compiled.signature.return_type
    declared = tuple(str(each.dtype) for each in signature.returns)
    returned = tuple(map(str, getattr(back, "types", [] if str(back) == "none" else [back])))
    if declared != returned:
        name = dispatcher.py_func.__name__
        raise TypeError(f"{name} returns {returned}; its annotation says {declared}")
    return compiled


def _numba_type(found: Any) -> Any:
    from numba.core import types

    from cocite.kernels._kernel import Array, Number, Struct

    if found is None:
        return types.none
    if isinstance(found, Struct):
        return types.NamedTuple(tuple(map(_numba_type, found.items)), found.kind)
    if isinstance(found, Number):
        return types.boolean if found.dtype == "bool" else getattr(types, found.dtype)
    if isinstance(found, Array):
        of = types.boolean if found.dtype == "bool" else getattr(types, found.dtype)
        return types.Array(of, found.dimensions, "C", readonly=not found.written)
    return types.Tuple(tuple(map(_numba_type, found)))


def _object_of(symbol: str, compiled: Any, target: str) -> bytes:
    """Return the object code of a kernel under the name of ``symbol``."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=_processor(target), features="", opt=3, reloc="pic", codemodel="small"
    )
    module = compiled.library._get_module_for_linking().clone()
    for function in module.functions:
        if function.name == compiled.fndesc.llvm_func_name:
            function.linkage, function.visibility, function.name = "external", "hidden", symbol
        elif not function.is_declaration:
            function.linkage = "internal"
    for variable in module.global_variables:
        if variable.linkage.name == "common":  # of Numba's own calls; not needed
            variable.linkage = "internal"
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    return bytes(machine.emit_object(module))


def _processor(target: str) -> str:
    return target if target in X86 else "generic"


# -- entries -----------------------------------------------------------------------------

_HEAD = """
typedef long long i64;
typedef struct {  // an array of NumPy, behind the head that all objects of Python have
  char *data;
  int dimensions;
  i64 *sizes, *strides;
  void *base, *type;
  int flags;
} Array;

#define OPEN __attribute__((visibility("default")))
#define OF(array) ((Array *) ((char *) (array) + cocite_head))
#define IS(array, count, number, wanted) \\
  (OF(array)->dimensions == count && OF(array)->type == cocite_types[number] \\
   && (OF(array)->flags & wanted) == wanted)

OPEN i64 cocite_head;         // bytes of the head
OPEN void *cocite_types[16];  // NumPy's type objects

void *malloc(unsigned long);
void free(void *);
double frexp(double, int *);

// Numba's runtime: a block of memory begins with references, destructor, its argument, address,
// size and allocator.
void *NRT_MemInfo_alloc_aligned(unsigned long size, unsigned align) {
  i64 *block = malloc(size + align + 64);
  if (block) {
    unsigned long begin = ((unsigned long) block + align + 63) & -(unsigned long) align;
    block[0] = 1, block[1] = 0, block[2] = 0, block[3] = begin, block[4] = size, block[5] = 0;
  }
  return block;
}
void NRT_MemInfo_call_dtor(void *block) { free(block); }
double numba_frexp(double value, int *exponent) { return frexp(value, exponent); }
"""
"""What entries share."""

_C = {
    "bool": "unsigned char",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned",
    "uint64": "unsigned long long",
    "int32": "int",
    "int64": "i64",
    "float32": "float",
    "float64": "double",
}
_FLAGS, _WRITABLE = 0x101, 0x400
"""NumPy's flags: contiguous and aligned; writable."""


def _entry(symbol: str, signature: Any) -> str:
    """Return the entry of a kernel in C: it checks the arrays, and passes their parts on.

    Numba takes of an array: its block and its owner, of which it has none here, the count of items
    and the size of one, the address, sizes, strides.
    """
    from cocite.kernels._kernel import DTYPES, MISMATCH, Array, flat

    names = [dtype.name for dtype in DTYPES]
    takes, types, passed, checks = ["void *room"], ["void *", "void **"], [], []
    for number, kind in enumerate(flat(signature.arguments)):
        at = f"a{number}"
        if not isinstance(kind, Array):
            types.append(_C[kind.dtype] if kind else "void *")
            takes.append(f"{types[-1]} {at}")
            passed.append(at)
            continue
        flags = _FLAGS | (_WRITABLE if kind.written else 0)
        checks.append(f"IS({at}, {kind.dimensions}, {names.index(kind.dtype)}, {flags})")
        sizes = [f"OF({at})->sizes[{i}]" for i in range(kind.dimensions)]
        strides = [f"OF({at})->strides[{i}]" for i in range(kind.dimensions)]
        item = DTYPES[names.index(kind.dtype)].itemsize
        types += ["void *", "void *", "i64", "i64", "char *", *["i64"] * 2 * kind.dimensions]
        takes.append(f"void *{at}")
        passed += ["0", "0", " * ".join(sizes), str(item), f"OF({at})->data", *sizes, *strides]
    room = "room" if signature.returns else "&none"  # a pointer is written all the same
    refused = f"  if (!({' && '.join(checks)})) return {MISMATCH};\n" if checks else ""
    return (
        f"\nint kernel_{symbol}({', '.join(types)});\n"
        f"OPEN int {symbol}({', '.join(takes)}) {{\n{refused}  void *none, *wrong;\n"
        f"  return kernel_{symbol}({', '.join([room, '&wrong', *passed])});\n}}\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--target", action="append", help="a processor; this one by default")
    parser.add_argument("--checked", action="store_true", help="check the bounds of all indexes")
    given = parser.parse_args()
    for chosen in given.target or [_host()]:
        print(build(chosen, checked=given.checked))
