"""Scratch on disk, and giving its pages back."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.errors import ResourceError
from cocite.storage import evict
from cocite.storage.spool import Scratch


def resident(array: np.ndarray) -> int:
    """Bytes of the mapping around ``array`` that this process holds."""
    address, found = array.ctypes.data, None
    for line in Path("/proc/self/smaps").read_text("ascii", "replace").splitlines():
        if bounds := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            low, high = (int(bound, 16) for bound in bounds.groups())
            found = low <= address < high
        elif found and line.startswith("Rss:"):
            return 1024 * int(line.split()[1])
    raise AssertionError("not mapped")


@given(st.data())
def test_what_is_forgotten_is_still_there(tmp_path: Path, data: st.DataObject) -> None:
    array = Scratch(tmp_path).zeros((3000, 3), np.uint32)
    array[:] = np.arange(9000).reshape(3000, 3)
    low = data.draw(st.integers(0, 3000))
    high = data.draw(st.integers(low, 3000))
    evict(array[low:high], array.reshape(-1)[low:high], array[low:high, 1], array)
    assert (array.reshape(-1) == np.arange(9000)).all()


def test_a_slice_gives_back_its_own_pages() -> None:
    if not Path("/proc/self/smaps").exists():
        pytest.skip("needs /proc")
    array = Scratch.near("/nowhere").zeros(1 << 20, np.uint64)
    array[:] = 1
    whole = resident(array)
    assert whole == array.nbytes
    evict(array[: 1 << 19])
    assert resident(array) == whole // 2
    evict(array)
    assert resident(array) == 0


def test_pages_that_came_along_are_given_back_too() -> None:
    """A fault maps up to 2 MB around what is touched, where the system holds it in one piece."""
    if not Path("/proc/self/smaps").exists():
        pytest.skip("needs /proc")
    array = Scratch.near("/nowhere").zeros(1 << 20, np.uint64)
    array[:] = 1
    evict(array[300_000:300_100])
    assert resident(array) == array.nbytes - (2 << 20)


def test_scratch_lies_beside_a_store_and_has_no_name(tmp_path: Path) -> None:
    scratch = Scratch.near(tmp_path)
    assert scratch.on_disk
    assert scratch.zeros((5, 2), np.float32).tolist() == [[0, 0]] * 5
    assert list(tmp_path.iterdir()) == []


def test_no_room_for_scratch_is_said(tmp_path: Path) -> None:
    with pytest.raises(
        ResourceError, match=r"of scratch in .*B free there\). Give more memory with --memory"
    ):
        Scratch(tmp_path).zeros(1 << 57, np.uint8)
