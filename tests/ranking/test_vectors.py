"""Vectors gone over in pieces: nothing is left out, and no sum depends on how they are cut."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.ranking import vectors

VALUES = st.lists(st.integers(0, 4).map(float), min_size=1, max_size=40)


@pytest.fixture(params=[1, 3, 1 << 14])
def _pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "PIECE", request.param)


@pytest.mark.usefixtures("_pieces")
@given(VALUES, st.integers(1, 9))
def test_the_order_of_the_top_is_that_of_a_sort(values: list[float], k: int) -> None:
    truth = sorted(range(len(values)), key=lambda i: (-values[i], i))[:k]
    assert vectors.order_of(np.array(values), k).tolist() == truth


@pytest.mark.usefixtures("_pieces")
@given(VALUES)
def test_sums_are_those_of_the_values(values: list[float]) -> None:
    array = np.array(values)
    assert vectors.total(array) == sum(values)
    assert vectors.total(array, np.arange(array.size) % 3) == sum(values[::3])
    vectors.scale(array, 0.5)
    assert array.tolist() == [0.5 * value for value in values]


def _whole(offsets: list[int], first: int, end: int) -> Iterator[int]:
    """The rows from ``first`` on whose links all lie before ``end``."""
    while first + 1 < len(offsets) and offsets[first + 1] <= end:
        yield first
        first += 1


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=12),
    st.integers(1, 5),
    st.integers(1, 4),
    st.data(),
)
def test_stretches_cover_all(sizes: list[int], links: int, rows: int, data: st.DataObject) -> None:
    offsets = [0, *np.cumsum(sizes).tolist()]
    first = data.draw(st.integers(0, len(sizes)))
    last = data.draw(st.integers(first, len(sizes)))
    row, link = first, offsets[first]
    array = np.array(offsets, np.uint64)
    for low, high, begin, end in vectors.stretches(array, first, last, links, rows):
        assert (low, begin) == (row, link)
        assert end - begin <= links
        assert 1 <= high - low <= rows
        done = list(_whole(offsets[: high + 1], low, end))
        assert high - low - len(done) in (0, 1)  # the last one may be cut
        row, link = low + len(done), end
    assert (row, link) == (last, offsets[last])
