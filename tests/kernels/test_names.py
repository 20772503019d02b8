"""Front coding and edit distance against plain twins."""

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
    """Levenshtein's, row by row."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        above, row = row, [i]
        for j, b in enumerate(second, 1):
            row.append(min(row[j - 1] + 1, above[j] + 1, above[j - 1] + (a != b)))
    return row[-1]


@given(
    st.lists(st.binary(min_size=1, max_size=80), min_size=1, max_size=40),
    st.binary(min_size=1, max_size=64),
)
def test_distances_are_levenshteins(names: list[bytes], wanted: bytes) -> None:
    assert found(names, wanted) == [distance(name.lower(), wanted.lower()) for name in names]


@given(
    st.lists(st.text("abAB", min_size=1, max_size=70).map(str.encode), min_size=1, max_size=40),
    st.text("abAB", min_size=1, max_size=64).map(str.encode),
)
def test_distances_of_like_names_are_levenshteins(names: list[bytes], wanted: bytes) -> None:
    assert found(names, wanted) == [distance(name.lower(), wanted.lower()) for name in names]


@pytest.mark.parametrize("size", [1, 2, 63, 64])
def test_distances_at_the_ends_of_the_word(size: int) -> None:
    wanted = bytes(range(128, 128 + size))
    names = [wanted, wanted[:-1] or b"x", wanted + b"x", b"x" + wanted[1:], b"x" * 200]
    assert found(names, wanted) == [distance(name, wanted) for name in names]


def found(names: list[bytes], wanted: bytes) -> list[int]:
    out = np.empty(len(names), np.int32)
    distances(*encoded(names), len(names), np.frombuffer(wanted, np.uint8), out)
    return [int(value) for value in out]
