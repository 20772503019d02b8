"""Cost of calling a kernel: by ctypes as in cocite, by cffi, and by Numba.

    python -m benchmarks.calls

Calls a kernel with five arrays that does almost nothing 200,000 times, and prints the least of five
rounds. cffi receives the address and size of each array, through a module compiled here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

_COUNT, _ROUNDS = 200_000, 5
_C = f"int gather({', '.join(f'void *a{i}, long n{i}' for i in range(5))});"
_NUMBA = """
import timeit, numpy as np
from benchmarks.calls import arguments
from cocite.kernels.networks import gather
args = arguments()
gather(*args)
print(min(timeit.repeat(lambda: gather(*args), number=200000, repeat=5)) / 200000)
"""


def arguments() -> tuple[Any, ...]:
    """Return five arrays for ``networks.gather``, of a graph without nodes."""
    return (
        np.zeros(1, np.uint64),
        np.zeros(0, np.uint32),
        np.zeros(0, np.float64),
        np.zeros(0, np.float64),
        np.zeros(0, np.float64),
    )


def seconds(call: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    return min(timeit.repeat(call, number=_COUNT, repeat=_ROUNDS)) / _COUNT


def by_cffi(folder: Path) -> float:
    """Return the seconds of a call in the API mode of cffi."""
    cffi: Any = import_module("cffi")
    maker = cffi.FFI()
    maker.cdef(_C)
    maker.set_source("_calls", _C.replace(";", " { return (int) (n0 + n1 + n2 + n3 + n4); }"))
    maker.compile(tmpdir=str(folder))
    sys.path.insert(0, str(folder))
    module: Any = import_module("_calls")
    args, address, function = arguments(), module.ffi.from_buffer, module.lib.gather
    return seconds(lambda: function(*(x for a in args for x in (address(a), a.size))))


def main() -> None:
    """Measure and print."""
    from cocite.kernels.networks import gather

    args = arguments()
    found = {"ctypes, as cocite calls": seconds(lambda: gather(*args))}
    with tempfile.TemporaryDirectory() as folder:
        found["cffi, API mode"] = by_cffi(Path(folder))
    env = os.environ | {"COCITE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _NUMBA], env=env, check=True, capture_output=True, text=True
    )
    found["Numba's dispatcher"] = float(done.stdout)
    for name, value in found.items():
        print(f"{name:24} {value * 1e6:6.2f} µs")


if __name__ == "__main__":
    main()
