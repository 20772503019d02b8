"""Bits that changed on the disk: what is made of a damaged file is an error that names it, and
never another result that ends well.

Each flip is judged by what a sound store gives: a verb either raises :class:`Damaged` with the
file's name, or makes what it made before, to the byte (a file that it does not read may be
anything). ``tests/torture/flips.py`` flips them, and ``make torture`` more of them than a test.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite import Graph
from cocite.errors import Damaged
from cocite.index.layouts.contract import is_shard
from cocite.storage import Store
from tests.conftest import MakeGraph
from tests.torture.flips import bytes_of, edges, flip_bits, flipped, of_a_graph, of_an_index

FLIPS = 280
"""Bits that are flipped in a graph; half as many in each index."""


# -- what is made of a graph ---------------------------------------------------------------


@pytest.fixture
def graph(make_graph: MakeGraph) -> Path:
    made: Path = make_graph(edges(1), weight_column="3").path
    return made


@pytest.mark.torture
def test_flipped_bits_are_refused(make_graph: MakeGraph, graph: Path, tmp_path: Path) -> None:
    older = make_graph(edges(2), weight_column="3")
    cocite.build(older, tmp_path / "older", measure="psimrank", samples=4, length=4)
    found = Counter(flip_bits(graph, of_a_graph(tmp_path / "older"), FLIPS, tmp_path / "made"))
    assert found == {"damaged": FLIPS}


@pytest.mark.torture
def test_unless_nobody_looks(graph: Path, tmp_path: Path) -> None:
    """The flips are such as change a result: with ``verify=False`` some of them do."""

    def ranks(path: Path, folder: Path) -> object:
        try:
            return cocite.pagerank(Graph.open(path, verify=False)).values.tolist()
        except Damaged:
            return "damaged"

    found = Counter(flip_bits(graph, {"rank": ranks}, 64, tmp_path / "made"))
    wrong = sum(count for what, count in found.items() if what.startswith("rank of a damaged"))
    assert found["damaged"] == 0
    assert wrong > 10
    assert found["the same"] > 10  # of names


# -- what is made of an index ---------------------------------------------------------------


def told_of_lost(found: Counter[str]) -> int:
    """A batch that finds shards to be damaged is made without them, and says so."""
    return sum(n for what, n in found.items() if what.startswith("related-all of a damaged in.sam"))


@pytest.mark.torture
@pytest.mark.parametrize("measure", ["psimrank", "neighborhood", "xjaccard"])
def test_index_bit_flips(make_graph: MakeGraph, graph: Path, tmp_path: Path, measure: str) -> None:
    newer = make_graph([*edges(1), ("page 1", "new", 2)], weight_column="3").path
    options: dict[str, Any] = {"measure": measure, "unweighted": True}
    if measure != "neighborhood":
        options |= {"samples": 5, "shard": 2, "length": 3}
    cocite.build(graph, tmp_path / "x", **options)
    makes = of_an_index(graph, newer)
    found = Counter(flip_bits(tmp_path / "x", makes, FLIPS // 2, tmp_path / "made"))
    same = found.pop("the same", 0)
    if measure == "neighborhood":  # a refresh reads nothing of what it makes anew
        assert 0 < same < FLIPS // 2
    else:
        assert same == 0
        lost = told_of_lost(found)
        assert lost > 10
        found = Counter({"damaged": found["damaged"] + lost}) + Counter(
            {k: v for k, v in found.items() if k != "damaged" and "related-all of a da" not in k}
        )
    assert found == {"damaged": FLIPS // 2 - same}


@pytest.mark.torture
def test_no_flipped_bit_of_pieces_is_joined(graph: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"measure": "psimrank", "length": 4}
    cocite.build(graph, tmp_path / "a", numbers=range(3), **options)
    cocite.build(graph, tmp_path / "b", numbers=range(3, 6), **options)

    def merge(first: Path, folder: Path) -> object:
        cocite.merge([tmp_path / "a", tmp_path / "b"], folder / "x")
        return bytes_of(folder / "x")

    for piece in ("a", "b"):
        found = Counter(flip_bits(tmp_path / piece, {"merge": merge}, 70, tmp_path / "made"))
        same = found.pop("the same", 0)
        # Positions are made anew from the members, and names are copied from the first.
        files = [
            name
            for name, entry in Store.open(tmp_path / piece, "index").manifest.files.items()
            if entry.nbytes
        ]
        anew = [files[number % len(files)] for number in range(70)].count("in.positions")
        assert same == anew if piece == "a" else anew < same < 70
        assert found == {"damaged": 70 - same}


# -- questions --------------------------------------------------------------------------------


@pytest.mark.torture
def test_a_small_index_is_compared_when_it_is_opened(graph: Path, tmp_path: Path) -> None:
    cocite.build(graph, tmp_path / "x", measure="psimrank", samples=6, shard=2, unweighted=True)
    whole = cocite.open(tmp_path / "x")
    assert not whole.missing_samples
    for name in Store.open(tmp_path / "x", "index").manifest.files:
        with flipped(tmp_path / "x" / name, 33):
            assert not cocite.open(tmp_path / "x", verify=False).missing_samples
            if is_shard(name):
                index = cocite.open(tmp_path / "x")
                assert [each.file for each in index.missing_samples] == [name]
                assert index.samples == 4
            else:
                with pytest.raises(Damaged, match=f"{name} has checksum"):
                    cocite.open(tmp_path / "x")
