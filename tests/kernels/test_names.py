"""Front coding and edit distance against plain twins."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.kernels.names import BLOCK, decode, distances, encode

NAMES = st.lists(
    st.one_of(st.binary(min_size=1, max_size=12), st.text("ab", min_size=1).map(str.encode))
)


def encoded(names: list[bytes]) -> tuple[Any, Any]:
    text = np.frombuffer(b"".join(names), np.uint8)
    ends = np.cumsum([len(name) for name in names], dtype=np.uint64)
    out = np.empty(text.size + 6 * len(names), np.uint8)
    blocks = np.empty(-(-len(names) // BLOCK), np.uint64)
    return out[: encode(text, ends, out, blocks)], blocks


def decoded(data: Any, blocks: Any, ids: list[int], room: int = 1 << 20) -> list[bytes]:
    out, ends = np.empty(room, np.uint8), np.empty(len(ids), np.uint64)
    needed = decode(data, blocks, np.array(ids, np.uint32), out, ends)
    assert needed == (ends[-1] if ids else 0)
    begins = [0, *ends.tolist()]
    return [out[a:b].tobytes() for a, b in itertools.pairwise(begins)]


def distance(first: bytes, second: bytes) -> int:
    """Levenshtein's, row by row."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        above, row = row, [i]
        for j, b in enumerate(second, 1):
            row.append(min(row[j - 1] + 1, above[j] + 1, above[j - 1] + (a != b)))
    return row[-1]


@given(NAMES, st.data())
def test_names_come_back_in_any_order(names: list[bytes], data: st.DataObject) -> None:
    stored = encoded(names)
    assert decoded(*stored, list(range(len(names)))) == names
    if names:
        ids = data.draw(st.lists(st.integers(0, len(names) - 1)))
        assert decoded(*stored, ids) == [names[i] for i in ids]


@pytest.mark.parametrize("count", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1])
def test_every_block_begins_with_a_whole_name(count: int) -> None:
    names = [b"shared beginning %03d" % i for i in range(count)]
    data, blocks = encoded(names)
    for block, begin in enumerate(blocks.tolist()):
        first = names[block * BLOCK]
        assert data[begin : begin + 2 + len(first)].tobytes() == bytes([0, len(first)]) + first
    assert decoded(data, blocks, list(range(count))) == names


@pytest.mark.parametrize("length", [127, 128, 16_383, 16_384, 65_535])
def test_lengths_of_several_bytes(length: int) -> None:
    names = [b"x" * length, b"x" * (length - 1) + b"y", b"z" * length, b"z"]
    assert decoded(*encoded(names), [3, 1, 0, 2]) == [names[i] for i in (3, 1, 0, 2)]


def test_too_little_room_is_measured() -> None:
    data, blocks = encoded([b"abc", b"abd", b"x"])
    out, ends = np.zeros(4, np.uint8), np.empty(3, np.uint64)
    assert decode(data, blocks, np.array([0, 1, 2], np.uint32), out, ends) == 7
    assert ends.tolist() == [3, 6, 7]
    assert out[:3].tobytes() == b"abc"


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
