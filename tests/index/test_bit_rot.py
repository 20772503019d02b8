"""Bit rot: a damaged file raises an error that names it, and never gives another result.

Each flip is compared with the result of an intact store: a command either raises
:class:`Damaged` with the file's name, or gives the same bytes as before (a file that it does not
read may be anything). ``tests/torture/flips.py`` flips the bits; ``make torture`` flips more.
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
from tests.torture.flips import bytes_of, edges, flip_bits, flipped, graph_makes, index_makes

FLIPS = 280
"""Number of bits flipped in a graph; each index gets half as many."""


# -- graphs --------------------------------------------------------------------------------


@pytest.fixture
def graph(make_graph: MakeGraph) -> Path:
    path: Path = make_graph(edges(1), weight_column="3").path
    return path


@pytest.mark.torture
def test_graph_flipped_bits_raise_damaged(
    make_graph: MakeGraph, graph: Path, tmp_path: Path
) -> None:
    older = make_graph(edges(2), weight_column="3")
    cocite.build(older, tmp_path / "older", measure="psimrank", samples=4, length=4)
    outcomes = Counter(flip_bits(graph, graph_makes(tmp_path / "older"), FLIPS, tmp_path / "made"))
    assert outcomes == {"damaged": FLIPS}


@pytest.mark.torture
def test_graph_verify_false_misses_flipped_bits(graph: Path, tmp_path: Path) -> None:
    """Some flips do change a result with ``verify=False``."""

    def ranks(path: Path, folder: Path) -> object:
        try:
            return cocite.pagerank(Graph.open(path, verify=False)).values.tolist()
        except Damaged:
            return "damaged"

    outcomes = Counter(flip_bits(graph, {"rank": ranks}, 64, tmp_path / "made"))
    changed = sum(
        count for outcome, count in outcomes.items() if outcome.startswith("rank of a damaged")
    )
    assert outcomes["damaged"] == 0
    assert changed > 10
    assert outcomes["the same"] > 10  # flips in names


# -- indexes -------------------------------------------------------------------------------


def count_reported_losses(outcomes: Counter[str]) -> int:
    """Count the batches that reported damaged shards and went on without them."""
    return sum(
        count
        for outcome, count in outcomes.items()
        if outcome.startswith("related-all of a damaged in.sam")
    )


@pytest.mark.torture
@pytest.mark.parametrize("measure", ["psimrank", "neighborhood", "xjaccard"])
def test_index_flipped_bits_raise_damaged(
    make_graph: MakeGraph, graph: Path, tmp_path: Path, measure: str
) -> None:
    newer = make_graph([*edges(1), ("page 1", "new", 2)], weight_column="3").path
    options: dict[str, Any] = {"measure": measure, "unweighted": True}
    if measure != "neighborhood":
        options |= {"samples": 5, "shard": 2, "length": 3}
    cocite.build(graph, tmp_path / "x", **options)
    makes = index_makes(graph, newer)
    outcomes = Counter(flip_bits(tmp_path / "x", makes, FLIPS // 2, tmp_path / "made"))
    same = outcomes.pop("the same", 0)
    if measure == "neighborhood":  # a refresh does not read what it rebuilds
        assert 0 < same < FLIPS // 2
    else:
        assert same == 0
        lost = count_reported_losses(outcomes)
        assert lost > 10
        outcomes = Counter({"damaged": outcomes["damaged"] + lost}) + Counter(
            {k: v for k, v in outcomes.items() if k != "damaged" and "related-all of a da" not in k}
        )
    assert outcomes == {"damaged": FLIPS // 2 - same}


@pytest.mark.torture
def test_merge_finds_flipped_bits(graph: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"measure": "psimrank", "length": 4}
    cocite.build(graph, tmp_path / "a", numbers=range(3), **options)
    cocite.build(graph, tmp_path / "b", numbers=range(3, 6), **options)

    def merge(first: Path, folder: Path) -> object:
        cocite.merge([tmp_path / "a", tmp_path / "b"], folder / "x")
        return bytes_of(folder / "x")

    for piece in ("a", "b"):
        outcomes = Counter(flip_bits(tmp_path / piece, {"merge": merge}, 70, tmp_path / "made"))
        same = outcomes.pop("the same", 0)
        # Positions are rebuilt from the members, and names are copied from the first piece.
        files = [
            name
            for name, entry in Store.open(tmp_path / piece, "index").manifest.files.items()
            if entry.nbytes
        ]
        rebuilt = [files[number % len(files)] for number in range(70)].count("in.positions")
        assert same == rebuilt if piece == "a" else rebuilt < same < 70
        assert outcomes == {"damaged": 70 - same}


# -- queries -------------------------------------------------------------------------------


@pytest.mark.torture
def test_open_verifies_small_index(graph: Path, tmp_path: Path) -> None:
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
