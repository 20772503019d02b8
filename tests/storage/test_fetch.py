"""What is fetched of a mapped file is read, and what lies around it is not."""

import ctypes
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cocite.storage import ArrayWriter, fetch, map_array

PAGE = os.sysconf("SC_PAGE_SIZE")


def cached(array: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which pages of an array that begins with a page are in the system's cache."""
    pages = -(-array.size // PAGE)
    found = np.zeros(pages, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    begin, size = ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.size)
    if libc.mincore(begin, size, ctypes.c_void_p(found.ctypes.data)):
        pytest.skip("needs mincore")
    return (found & 1).astype(np.bool_)


def test_a_slice_is_read_and_nothing_around_it(tmp_path: Path) -> None:
    with ArrayWriter(tmp_path / "a", np.uint8) as writer:
        writer.write(np.ones(8000 * PAGE, np.uint8))
    array = map_array(tmp_path / "a", writer.finished)
    file = os.open(tmp_path / "a", os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)
    if cached(array).any():
        pytest.skip("the file stays in the cache")
    part = array[1000 * PAGE + 5 : 1300 * PAGE]
    fetch(part, array[:0], np.arange(3))
    assert part.sum() == part.size
    found = np.flatnonzero(cached(array))
    assert set(range(1000, 1300)) <= set(found.tolist())
    assert found.size < 450  # a fault would bring more
