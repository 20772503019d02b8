"""``Spool``: rows come back by bucket, in the order in which they were written."""

import errno
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.errors import ResourceError
from cocite.storage.spool import ScratchFile, Spool

BUCKETS = 4


def make_rows(numbers: list[int]) -> np.ndarray[Any, Any]:
    return np.repeat(np.array(numbers, np.uint32)[:, None], 3, 1)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.integers(0, BUCKETS - 1), max_size=9)), max_size=9
    ),
    st.integers(1, 5),
)
def test_spool_returns_buckets_in_order(
    tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[int, list[int]]], size: int
) -> None:
    spool = Spool(tmp_path_factory.getbasetemp(), BUCKETS)
    for _ in range(2):  # the second time over the remains of the first
        spool.clear()
        expected = defaultdict(list)
        number = 0
        for tag, unsorted in batches:
            buckets = sorted(unsorted)
            for bucket in buckets:
                expected[bucket].append((tag, number))
                number += 1
            numbers = list(range(number - len(buckets), number))
            starts = np.searchsorted(buckets, range(BUCKETS + 1)).astype(np.uint32)
            spool.append(make_rows(numbers), starts, tag)
        buffer = np.empty((size, 3), np.uint32)
        for bucket in range(BUCKETS):
            found = [
                (tag, int(row[0])) for tag, rows in spool.pieces(bucket, buffer) for row in rows
            ]
            assert found == expected[bucket]
            tags = [tag for tag, _ in found]
            runs = sum(a != b for a, b in zip(tags, [None, *tags], strict=False))
            assert len(spool.readers(bucket)) == runs


def test_scratch_file_reports_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = ScratchFile(tmp_path)
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(ResourceError, match=rf"80 bytes of scratch space in {tmp_path}: No space"):
        file.write(0, np.zeros(10, np.uint64))
