"""Front coding and edit distance against plain oracles."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.kernels.names import BLOCK, distances, encode

NAMES = st.lists(
    st.one_of(st.binary(min_size=1, max_size=12), st.text("ab", min_size=1).map(str.encode))
)


def encoded(names: list[bytes]) -> tuple[Any, Any]:
    text = np.frombuffer(b"".join(names), np.uint8)
    ends = np.cumsum([len(name) for name in names], dtype=np.uint64)
    out = np.empty(text.size + 6 * len(names), np.uint8)
    blocks = np.empty(-(-len(names) // BLOCK), np.uint64)
    return out[: encode(text, ends, out, blocks)], blocks


def distance(first: bytes, second: bytes) -> int:
    """The Levenshtein distance, row by row."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        previous, row = row, [i]
        for j, b in enumerate(second, 1):
            row.append(min(row[j - 1] + 1, previous[j] + 1, previous[j - 1] + (a != b)))
    return row[-1]


def texts(most: int) -> st.SearchStrategy[bytes]:
    """Any bytes, or names of few letters, which are similar."""
    similar = st.text("abAB", min_size=1, max_size=most).map(str.encode)
    return st.one_of(st.binary(min_size=1, max_size=most), similar)


@given(st.lists(texts(80), min_size=1, max_size=40), texts(64))
def test_distances_equal_levenshtein(names: list[bytes], query: bytes) -> None:
    assert computed(names, query) == [distance(name.lower(), query.lower()) for name in names]


@pytest.mark.parametrize("size", [1, 2, 63, 64])
def test_distances_equal_levenshtein_at_word_size(size: int) -> None:
    query = bytes(range(128, 128 + size))
    names = [query, query[:-1] or b"x", query + b"x", b"x" + query[1:], b"x" * 200]
    assert computed(names, query) == [distance(name, query) for name in names]


def computed(names: list[bytes], query: bytes) -> list[int]:
    out = np.empty(len(names), np.int32)
    distances(*encoded(names), len(names), np.frombuffer(query, np.uint8), out)
    return [int(value) for value in out]
