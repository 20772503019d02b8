"""Rows in buckets: what was written comes back, bucket by bucket, in the order of writing."""

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


def rows_of(numbers: list[int]) -> np.ndarray[Any, Any]:
    return np.repeat(np.array(numbers, np.uint32)[:, None], 3, 1)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.integers(0, BUCKETS - 1), max_size=9)), max_size=9
    ),
    st.integers(1, 5),
)
def test_every_bucket_comes_back_in_order(
    tmp_path_factory: pytest.TempPathFactory, batches: list[tuple[int, list[int]]], size: int
) -> None:
    spool = Spool(tmp_path_factory.getbasetemp(), BUCKETS)
    for _ in range(2):  # the second time over what the first has left
        spool.clear()
        wanted = defaultdict(list)
        number = 0
        for tag, unsorted in batches:
            buckets = sorted(unsorted)
            for bucket in buckets:
                wanted[bucket].append((tag, number))
                number += 1
            numbers = list(range(number - len(buckets), number))
            starts = np.searchsorted(buckets, range(BUCKETS + 1)).astype(np.uint32)
            spool.append(rows_of(numbers), starts, tag)
        buffer = np.empty((size, 3), np.uint32)
        for bucket in range(BUCKETS):
            found = [
                (tag, int(row[0])) for tag, rows in spool.pieces(bucket, buffer) for row in rows
            ]
            assert found == wanted[bucket]
            tags = [tag for tag, _ in found]
            stretches = sum(a != b for a, b in zip(tags, [None, *tags], strict=False))
            assert len(spool.readers(bucket)) == stretches


def test_full_disk_names_place_and_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = ScratchFile(tmp_path)
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(ResourceError, match=rf"80 bytes of scratch in {tmp_path}: No space left"):
        file.write(0, np.zeros(10, np.uint64))
