"""Calls of kernels: they take declared arrays and numbers, and refuse anything else by name."""

import gc
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cocite.kernels import _kernel, links, random, scan
from cocite.kernels._kernel import JIT, Kernel, signatures

ROOT = Path(__file__).parents[2]
KERNELS = sorted(
    f"{path.stem}.{name}"
    for path in (ROOT / "src/cocite/kernels").glob("[a-z]*.py")
    for name, value in vars(import_module(f"cocite.kernels.{path.stem}")).items()
    if isinstance(value, Kernel) and value.__module__.endswith(f".{path.stem}")
)
only_built = pytest.mark.skipif(JIT, reason="Numba compiles for any arguments")


def read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


@only_built
@pytest.mark.parametrize("name", KERNELS)
def test_library_has_every_kernel_signature(name: str) -> None:
    module, _, function = name.partition(".")
    kernel = getattr(import_module(f"cocite.kernels.{module}"), function)
    declared = list(signatures(kernel.__wrapped__, kernel._variables))
    assert declared
    for signature in declared:
        assert _kernel.library()[signature.symbol(name)]


@pytest.mark.long
@only_built
def test_library_digest_matches_sources() -> None:
    """If this fails, run ``make kernels``."""
    build = import_module("hatch_build")
    assert _kernel.library_path().is_file()
    name = _kernel.library_path().stem.removeprefix("_native-")
    found = build.digest(name.removesuffix("-checked"), name.endswith("-checked"))
    assert found == _kernel.library_digest()


def count_ids(ids: Any, out: Any) -> Any:
    links.add_counts(ids, out)
    return out.tolist()


def test_call_takes_read_only_and_unpickled_arrays() -> None:
    ids = np.array([1, 1, 2], np.uint32)
    for array in (ids, read_only(ids.copy()), pickle.loads(pickle.dumps(ids)), ids[:3]):
        assert count_ids(array, np.zeros(4, np.uint32)) == [0, 2, 1, 0]
    assert count_ids(ids.astype(np.uint64), np.zeros(4, np.uint64)) == [0, 2, 1, 0]
    assert count_ids(ids[:0], np.zeros(1, np.uint32)) == [0]


def test_call_takes_python_and_numpy_numbers() -> None:
    expected = random.draw_key(np.uint64(7), np.uint64(1), np.uint64(2))
    assert random.draw_key(7, 1, 2) == random.draw_key(np.uint32(7), np.int64(1), 2) == expected
    assert random.draw_key(2**64 - 1, 0, 0) == random.draw_key(np.uint64(2**64 - 1), 0, 0)


@only_built
@pytest.mark.parametrize(
    "arguments",
    [
        (np.zeros(3, np.int32), np.zeros(4, np.uint32)),
        (np.zeros((3, 1), np.uint32), np.zeros(4, np.uint32)),
        (np.zeros(6, np.uint32)[::2], np.zeros(4, np.uint32)),
        (np.zeros(13, np.uint8)[1:].view(np.uint32), np.zeros(4, np.uint32)),
        (np.zeros(3, ">u4"), np.zeros(4, np.uint32)),
        (np.zeros(3, np.uint32), read_only(np.zeros(4, np.uint32))),
        (np.zeros(3, np.uint32), np.zeros(4, np.uint64)),
        ([0, 1], np.zeros(4, np.uint32)),
        (0, 1),
        (np.zeros(3, np.uint32),),
        (None, None),
    ],
    ids=str,
)
def test_call_refuses_undeclared_arguments(arguments: tuple[Any, ...]) -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match=r"links.add_counts was given .* and takes \(nodes: Ts"):
            links.add_counts(*arguments)


@only_built
@pytest.mark.parametrize("number", [-1, 2**64, 1.5, "1", None, np.float64(2.0)])
def test_call_refuses_numbers_out_of_range(number: Any) -> None:
    with pytest.raises(TypeError, match="draw_key was given"):
        random.draw_key(number, 0, 0)


@only_built
@pytest.mark.process
def test_missing_library_error_gives_advice() -> None:
    code = "from cocite.kernels import random; random.draw_key(1, 2, 3)"
    env = os.environ | {"COCITE_TARGET": "another"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "the compiled kernels cannot be loaded" in done.stderr
    assert "pip install ." in done.stderr


@only_built
@pytest.mark.skipif(
    not Path(_kernel.__file__).with_name(f"_native-{_kernel.targets()[0]}-checked.so").exists(),
    reason="needs kernels that check bounds: python hatch_build.py --checked",
)
@pytest.mark.process
def test_checked_kernel_refuses_index_out_of_bounds() -> None:
    code = (
        "import numpy as np; from cocite.kernels.links import add_counts; "
        "add_counts(np.array([4], np.uint32), np.zeros(4, np.uint32))"
    )
    env = os.environ | {"COCITE_CHECKED": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert "IndexError: links.add_counts: an index is out of bounds" in done.stderr


CALLS = """
import numpy as np
from cocite.kernels import links, random
ids = np.random.default_rng(0).integers(0, 1000, 50_000).astype(np.uint32)
out = np.zeros(1000, np.uint32)
links.add_counts(ids, out)
order = np.empty(random.ORDER_WORDS, np.uint32)
random.make_order(np.uint64(5), np.uint64(1000), order)
print(
    out.sum(), hash(out.tobytes()), random.draw_key(np.uint64(1), np.uint64(2), np.uint64(3)), order
)
"""


@pytest.mark.process
def test_jit_equals_library() -> None:
    env = os.environ | {"PYTHONHASHSEED": "0"}
    printed = {
        subprocess.run(
            [sys.executable, "-c", CALLS],
            env=env | {"COCITE_JIT": jit},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for jit in ("0", "1")
    }
    assert len(printed) == 1


@pytest.mark.skipif(JIT, reason="Numba binds")
def test_kernel_binds_in_several_threads_at_once() -> None:
    """CPython 3.11 confuses parsers of several threads if one is interrupted, as here by gc."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    interrupt = lambda phase, info: sum(range(300))  # noqa: E731 - lets another thread run
    sys.setswitchinterval(1e-6)
    gc.set_threshold(1)
    gc.callbacks.append(interrupt)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: len(scan.pull._bind()), range(100)))
    finally:
        gc.callbacks.remove(interrupt)
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)
    assert len(set(found)) == 1
