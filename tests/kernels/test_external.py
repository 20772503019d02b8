"""Dealing and merging rows, against sorting."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.constants import NOWHERE
from cocite.kernels import walk_blocks

Rows = np.ndarray[Any, Any]


def homes(cuts: list[int], words: int) -> tuple[Rows, Rows]:
    found = np.array(cuts, np.uint32), np.empty(words, np.uint32)
    walk_blocks.make_home(*found)
    return found


@given(
    st.sets(st.integers(1, 2**32 - 2), min_size=1, max_size=40),
    st.lists(st.integers(0, 2**32 - 2), max_size=60),
    st.sampled_from([4, 5, 64, 1 << 14]),
)
def test_rows_are_dealt_by_first_word(cuts: set[int], numbers: list[int], words: int) -> None:
    bounds = [0, *sorted(cuts)]
    numbers = (
        [number % bounds[-1] for number in numbers] + [b - 1 for b in bounds[1:]] + bounds[:-1]
    )
    rows = np.array([[n, i, i] for i, n in enumerate(numbers)], np.uint32)
    starts, out = np.empty(len(bounds), np.uint32), np.empty_like(rows)
    walk_blocks.deal(rows, *homes(bounds, words), False, starts, out)
    buckets = np.searchsorted(bounds, rows[:, 0], "right") - 1
    assert (out == rows[np.argsort(buckets, kind="stable")]).all()
    assert starts.tolist() == np.searchsorted(np.sort(buckets), range(len(bounds))).tolist()


def test_records_are_dealt_by_parent_and_apart_if_their_node_lies_elsewhere() -> None:
    none = int(NOWHERE)
    rows = np.array(
        [[25, 3, 1], [7, 3, 2], [25, 24, 3], [8, none, 4], [29, none, 5], [15, 14, 6]], np.uint32
    )
    starts, out = np.empty(7, np.uint32), np.empty_like(rows)
    walk_blocks.deal(rows, *homes([0, 10, 20, 30], 64), True, starts, out)
    assert starts.tolist() == [0, 2, 3, 4, 4, 6, 6]
    assert out[:, 2].tolist() == [2, 4, 1, 6, 3, 5]


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=400),
    st.integers(1, 13),
    st.integers(1, 4),
    st.integers(1, 50),
)
def test_runs_are_merged_by_head(owners: list[int], runs: int, each: int, size: int) -> None:
    """Head h lies in run owners[h]; the runs are fed ``each`` rows at a time."""
    left = [[h for h, owner in enumerate(owners) if owner % runs == r] for r in range(runs)]
    rows = np.zeros((runs * each, 3), np.uint32)
    begins = np.arange(runs, dtype=np.int64) * each
    cursor, ends, more = begins.copy(), begins.copy(), np.ones(runs, np.bool_)
    tree = np.empty(2 << (runs - 1).bit_length(), np.uint64)
    out = np.empty((size, 3), np.uint32)
    found: list[int] = []
    count = 1
    while count:
        for r in np.flatnonzero((cursor == ends) & more).tolist():
            taken, left[r] = left[r][:each], left[r][each:]
            begin = r * each
            rows[begin : begin + len(taken), 1] = taken
            cursor[r], ends[r], more[r] = begin, begin + len(taken), bool(left[r])
        count = int(walk_blocks.merge(rows, cursor, ends, more, tree, out))
        found += out[:count, 1].tolist()
    assert found == list(range(len(owners)))


@pytest.mark.parametrize("size", [1, 63, 64, 65, 200])
def test_tokens_that_come_to_one_node_are_one_token(size: int) -> None:
    standing = np.full((5, 2), NOWHERE)
    at = np.empty(5, np.uint32)
    rows = np.array([[10 + i % 3, i, 1 + i % 7] for i in range(size)], np.uint32)
    records = np.empty((size, 3), np.uint32)
    live, met = walk_blocks.meet(rows, np.uint32(10), standing, at, 0, records)
    assert live == min(3, size)
    assert met == size - live
    assert at[:live].tolist() == [10, 11, 12][:live]
    for head in range(live):
        sizes = rows[head::3, 2].tolist()
        assert standing[head].tolist() == [head, sum(sizes)]
        mine = records[:met][records[:met, 1] == head]
        assert mine[:, 0].tolist() == list(range(head + 3, size, 3))
        assert mine[:, 2].tolist() == np.cumsum(sizes)[:-1].tolist()
