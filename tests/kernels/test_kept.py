"""Kernels whose kept code is spoilt, or cannot be kept: they are compiled anew, and answer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cocite.compiled import cache as kept
from cocite.compiled.cache import Place
from cocite.compiled.clock import compiling
from cocite.kernels import _jit, _numba
from cocite.kernels.links import add_counts

NODES = np.array([1, 2, 2], np.uint32)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new place, and what a kernel keeps there when it is first called."""
    place = Place((tmp_path,), tmp_path, "the test says so")
    monkeypatch.setattr(_numba, "place", lambda: place)
    assert compiled() == 1
    return next((tmp_path / kept.folder_name()).glob("*.nbc"))


def compiled() -> int:
    """Call a kernel as a new process does: how many were compiled for it. Its answer is right."""
    before, out = compiling.kernels, np.zeros(3, np.uint32)
    _jit.kernel(add_counts.py_func)(NODES, out)
    assert out.tolist() == [0, 1, 2]
    return compiling.kernels - before


def signed(content: bytes) -> bytes:
    return kept._digest(content) + content


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "cut": lambda whole: whole[: len(whole) // 2],
    "zeros": lambda whole: bytes(len(whole)),
    "a bit of its checksum": lambda whole: bytes([whole[0] ^ 1]) + whole[1:],
    "a bit of its code": lambda whole: whole[:-900] + bytes([whole[-900] ^ 4]) + whole[-899:],
    "whole, and no code": lambda whole: signed(b"no pickle"),
    "whole, and empty": lambda whole: signed(b""),
    "whole, and something else": lambda whole: signed(b"\x80\x04N."),
}


@pytest.mark.parametrize("how", SPOILT)
def test_what_is_spoilt_is_compiled_and_kept_anew(cache: Path, how: str) -> None:
    whole = cache.read_bytes()
    assert compiled() == 0
    cache.write_bytes(SPOILT[how](whole))
    assert compiled() == 1
    assert cache.read_bytes() != SPOILT[how](whole)
    assert compiled() == 0


def test_flipped_bits_are_never_run(cache: Path) -> None:
    """What is not whole is not even looked at."""
    whole, rng = cache.read_bytes(), np.random.default_rng(1)
    place = Place((cache.parents[1],), None, "the test says so")
    for bit in rng.integers(8 * len(whole), size=200).tolist():
        spoilt = bytearray(whole)
        spoilt[bit // 8] ^= 1 << bit % 8
        cache.write_bytes(spoilt)
        assert kept.load(place, cache.name) is None


@pytest.mark.parametrize("which", ["file", "folder"])
def test_what_others_can_write_is_not_run(cache: Path, which: str) -> None:
    """Machine code of others would be theirs to choose."""
    (cache if which == "file" else cache.parent).chmod(0o777)
    assert compiled() == 1


CHILD = """
import resource, sys
import numpy as np
from cocite.kernels.links import add_counts

if sys.argv[1] != "-":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
for kind in (np.uint32, np.uint64):
    out = np.zeros(3, kind)
    add_counts(np.array([1, 2, 2], kind), out)
    print(out.tolist())
"""


def child(cache: Path, most: object) -> Any:

    return subprocess.run(
        [sys.executable, "-c", CHILD, str(most)],
        env=os.environ | {"COCITE_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.process
def test_a_cache_that_is_full_is_no_error_and_is_told_once(tmp_path: Path) -> None:
    """Files may have 1,000 bytes: nothing fits, as on a disk that is full."""
    for _ in range(2):
        done = child(tmp_path / "cache", 1000)
        assert done.stdout == "[0, 1, 2]\n" * 2
        assert done.stderr.count("compiled kernels cannot be kept in") == 1
        assert "File too large" in done.stderr
        left = {file.name for file in (tmp_path / "cache" / kept.folder_name()).iterdir()}
        assert left <= {kept.ABOUT}
    done = child(tmp_path / "cache", "-")
    assert (done.stdout, done.stderr) == ("[0, 1, 2]\n" * 2, "")
