"""Packed trees: runs as the format defines them, and back."""

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cocite.index.layouts.trees.build import packed_blob
from cocite.index.layouts.trees.format import PACKED, bits_of, parts_of
from cocite.kernels import runs
from cocite.measures import PartSettings

SETTINGS = PartSettings()


class Trees(NamedTuple):
    """The members in dendrogram order and their labels, of ``nodes`` nodes."""

    nodes: int
    member: NDArray[np.uint32]
    joined: NDArray[np.uint8]


@st.composite
def forests(draw: st.DrawFn) -> Trees:
    """Any nodes in any order, with stretches of ids and of labels; also none and all."""
    nodes = draw(st.sampled_from([1, 2, 31, 63, 64, 65, 128, 200]) | st.integers(1, 300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    cuts = np.sort(rng.integers(0, nodes, draw(st.integers(0, 30))))
    pieces = np.split(np.arange(nodes, dtype=np.uint32), cuts)
    pieces = [piece for piece in pieces if rng.random() < draw(st.sampled_from([0.0, 0.7, 1.0]))]
    order = rng.permutation(len(pieces))
    member = np.concatenate([np.empty(0, np.uint32), *(pieces[i] for i in order)])
    stretch = draw(st.sampled_from([1, 4, 40]))
    labels = rng.integers(0, draw(st.sampled_from([2, 4, 16])), nodes // stretch + 1)
    labels = np.maximum(labels, rng.random(labels.size) < draw(st.sampled_from([0.5, 0.99])))
    joined = np.repeat(labels, stretch)[: member.size].astype(np.uint8)
    # Drop trees of one node.
    starts = np.flatnonzero(joined == 0)
    sizes = np.diff(starts, append=member.size)
    keep = np.ones(member.size, bool)
    if member.size:
        joined[0] = 0
        starts = np.flatnonzero(joined == 0)
        sizes = np.diff(starts, append=member.size)
        keep[starts[sizes == 1]] = False
    return Trees(nodes, member[keep].astype(np.uint32), joined[keep])


def packed_of(trees: Trees) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """The words of a sample, and its table row for kernels."""
    blob = packed_blob(trees.member, trees.joined, np.empty(trees.nodes, np.uint32))
    (words,) = blob.parts
    table, size = PACKED.place(trees.nodes, [blob.members], SETTINGS)
    assert size == words.size
    table[:, :3] = table[:, :3] * np.uint64(4) + np.uint64(words.ctypes.data)
    return words, table


def numbers(words: NDArray[np.uint32], count: int, bits: int) -> list[int]:
    """``count`` numbers of ``bits`` bits each, from the lowest on."""
    whole = int.from_bytes(words.tobytes(), "little")
    return [(whole >> (bits * i)) & ((1 << bits) - 1) for i in range(count)]


@given(forests())
def test_packed_blob_spells_trees_in_longest_runs(trees: Trees) -> None:
    """Runs spell the trees and then all other nodes, and no run could be longer."""
    words, table = packed_of(trees)
    runs, width, order_bits = table[0, 3:].tolist()
    assert (width, order_bits) == (bits_of(trees.nodes), bits_of(runs))
    directory, order, size = parts_of(trees.nodes, runs)
    stored = numbers(words[directory + order :], runs, width + 13)
    spelled, labels, starts = list[int](), list[int](), set[int]()
    previous = -1, 0, 0
    for each in stored:
        first, fields = each & ((1 << width) - 1), each >> width
        length, label, inner_label = (fields & 31) + 1, (fields >> 5) & 15, fields >> 9
        assert inner_label == 0 or length > 1
        if previous[0] == first and previous[2] < 32:
            assert label != previous[1] or label == 0
        spelled += range(first, first + length)
        labels += [label] + [inner_label] * (length - 1)
        previous = first + length, inner_label or label, length
        starts.add(first)
    count = trees.member.size
    assert spelled[:count] == trees.member.tolist()
    assert labels[:count] == trees.joined.tolist()
    assert spelled[count:] == sorted(set(range(trees.nodes)) - set(trees.member.tolist()))
    assert not any(labels[count:])
    rows = words[:directory].reshape(-1, 3)
    run_starts = [
        bit for low, high in rows[:, 1:].tolist() for bit in bits_low_first(low | high << 32)
    ]
    assert run_starts[: trees.nodes] == [int(node in starts) for node in range(trees.nodes)]
    assert run_starts[trees.nodes] == 1
    assert rows[:, 0].tolist() == [sum(run_starts[: 64 * i]) for i in range(len(rows))]
    firsts = [each & ((1 << width) - 1) for each in stored]
    by_id = sorted(range(runs), key=firsts.__getitem__)
    assert numbers(words[directory:][:order], runs, order_bits) == by_id
    assert not words[directory + order + size :].any()
    assert words.size >= directory + order + size + 2


def bits_low_first(word: int) -> list[int]:
    """The 64 bits of a word, low first."""
    return [(word >> i) & 1 for i in range(64)]


@given(forests())
def test_unpack_inverts_packed_blob(trees: Trees) -> None:
    _, table = packed_of(trees)
    member, joined = np.empty(trees.nodes, np.uint32), np.empty(trees.nodes, np.uint8)
    count = runs.unpack(table[0], member, joined)
    assert member[:count].tolist() == trees.member.tolist()
    assert joined[:count].tolist() == trees.joined.tolist()
