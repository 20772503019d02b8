"""``similarities`` of many pairs equal the ``similarity`` of each, to the bit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Index, UnknownNode
from cocite.errors import Damaged, UsageError
from cocite.index.layouts.trees.reader import TreeReader
from cocite.search import intervals, scorer
from cocite.search.intervals import Intervals
from tests.conftest import MakeGraph

RNG = np.random.default_rng(11)
EDGES = [(a, b) for a, b in RNG.integers(0, 90, (400, 2)).tolist() if a != b]
PAIRS = RNG.integers(0, 90, (60, 2))
PAIRS[7] = PAIRS[8] = 5, 5
INDEXES: dict[str, dict[str, Any]] = {
    "trees": {"measure": "psimrank", "samples": 40, "length": 8, "shard": 9},
    "packed": {"measure": "simrank", "samples": 20, "length": 8, "layout": "packed"},
    "paths": {"measure": "psimrank", "samples": 12, "length": 3, "layout": "paths"},
    "both": {"measure": "psimrank", "samples": 20, "direction": "both"},
    "blend": {"measure": "blend:0.7*psimrank+0.3*simrank", "samples": 15},
    "one sample": {"measure": "psimrank", "samples": 1},
    "rings": {"measure": "xjaccard", "samples": 8},
    "links": {"measure": "cocitation"},
    "mixed": {"measure": "blend:psimrank+cocitation", "samples": 10},
}
QUERIES: list[dict[str, Any]] = [
    {},
    {"confidence": 0.5, "interval": "bernstein"},
    {"interval": "hoeffding"},
]
TREES = ("trees", "packed", "paths", "both", "blend", "one sample")


@pytest.fixture(scope="module")
def links(module_graph: MakeGraph) -> Index:
    return cocite.build(module_graph(EDGES), measure="cocitation")


def single_scores(index: Index, **options: Any) -> list[str]:
    """Scores of all pairs by single queries, as text because nan != nan."""
    names = index.nodes.names(PAIRS.ravel())
    return [
        repr(tuple(index.similarity(a, b, **options)))
        for a, b in zip(names[::2], names[1::2], strict=True)
    ]


def batch_scores(index: Index, **options: Any) -> list[str]:
    return [repr(tuple(score)) for score in index.similarities(PAIRS, ids=True, **options)]


@pytest.mark.parametrize("kind", INDEXES)
def test_similarities_equal_similarity(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    index = cocite.build(make_graph(EDGES), threads=1, **INDEXES[kind])
    blocks: list[int] = []
    original = Intervals.of_pairs

    def of_pairs(self: Intervals, first: Any, *args: Any, **options: Any) -> Any:
        blocks.append(first.size)
        return original(self, first, *args, **options)

    monkeypatch.setattr(Intervals, "of_pairs", of_pairs)
    tree_queries: list[dict[str, Any]] = [
        {"decay": 0.3},
        {"meeting_weight": "t <= 2"},
        {"evidence": "geometric"},
    ]
    for options in QUERIES + tree_queries * (kind in TREES[:2]):
        expected = single_scores(index, **options)
        assert batch_scores(index, **options) == expected
        assert batch_scores(index, threads=3, **options) == expected
    assert bool(blocks) == (kind in TREES)
    assert kind not in TREES or {58, 20, 19} == set(blocks)


def test_similarities_report_progress_in_blocks(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorer, "_LEAST_BLOCK", 7)
    monkeypatch.setattr(scorer, "_BLOCK_TIMES", 1)
    monkeypatch.setattr(intervals, "_PAIRS_AT_ONCE", 3)
    index = cocite.build(make_graph(EDGES), samples=20, measure="psimrank")
    calls: list[tuple[str, int, int]] = []
    found = index.similarities(PAIRS, ids=True, progress=lambda *call: calls.append(call))
    assert [repr(tuple(score)) for score in found] == single_scores(index)
    assert calls[0] == ("scoring", 0, 60)
    assert calls[-1] == ("scoring", 60, 60)
    assert len(calls) > 8
    monkeypatch.setattr(TreeReader, "pairs_from", 1000)
    assert batch_scores(index) == single_scores(index)


def test_similarities_work_on_refreshed_and_lossy_index(
    make_graph: MakeGraph, tmp_path: Path
) -> None:
    old = make_graph(EDGES[:300])
    path = tmp_path / "x"
    cocite.build(old, path, samples=24, shard=6, measure="psimrank")
    index = cocite.refresh(path, make_graph(EDGES), fraction=0.25)
    assert len(index.stored.freshness.snapshots) == 2
    for options in QUERIES:
        assert batch_scores(index, **options) == single_scores(index, **options)
    shard = sorted(path.glob("in.samples-*"))[1]
    shard.unlink()
    lossy = cocite.open(path)
    assert lossy.missing_samples
    assert batch_scores(lossy) == single_scores(lossy)
    assert batch_scores(lossy) != batch_scores(index)


def test_similarities_skip_damaged_samples(make_graph: MakeGraph, tmp_path: Path) -> None:
    for layout in ("trees", "packed"):
        path = tmp_path / layout
        cocite.build(make_graph(EDGES), path, samples=12, shard=4, layout=layout, measure="simrank")
        shard = sorted(path.glob("in.samples-*"))[1]
        content = bytearray(shard.read_bytes())
        content[-2048:] = b"\xfd" * 2048
        content[64:2048] = b"\xfd" * 1984
        shard.write_bytes(content)
        if layout == "trees":
            positions = np.fromfile(path / "in.positions", np.uint32).reshape(-1, 12)
            positions[:, 4:8] = 10**6
            positions.tofile(path / "in.positions")
        index = cocite.open(path, verify=False)
        found = batch_scores(index)
        assert [lost.file for lost in index.missing_samples] == [shard.name]
        assert found == single_scores(index)


def test_similarities_accept_tables_and_columns(make_graph: MakeGraph, tmp_path: Path) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    index = cocite.build(make_graph(EDGES), samples=9, measure="psimrank")
    a, b = [f"{i}" for i in (3, 4, 5)], [f"{i}" for i in (4, 4, 6)]
    expected = list(index.similarities(a, b))
    assert expected == [index.similarity(*pair) for pair in zip(a, b, strict=True)]
    columns = {"one": a, "two": b}
    inputs: list[Any] = [list(zip(a, b, strict=True)), np.array([a, b]).T]
    inputs += [pandas.DataFrame(columns), polars.DataFrame(columns), pyarrow.table(columns)]
    for pairs in inputs:
        assert list(index.similarities(pairs)) == expected
        if hasattr(pairs, "columns"):
            assert list(index.similarities(pairs["one"], pairs["two"])) == expected
    integers = np.array([3, 4, 5]), np.array([4, 4, 6])
    assert list(index.similarities(*integers)) == expected
    names = index.nodes.names(np.array([3, 4]))
    assert index.similarities(*integers, ids=True)[0] == index.similarity(*names)
    ids_path = index.similarities(*integers, ids=True).write(tmp_path / "ids.jsonl")
    assert json.loads(ids_path.read_text().splitlines()[0])["b"] == 4
    table = index.similarities(a, b).to_pandas()
    assert list(table) == ["a", "b", "score", "stderr", "low", "high"]
    assert table["score"].tolist() == [score.score for score in expected]
    path = index.similarities(a, b).write(tmp_path / "pairs.csv")
    assert path.read_text().startswith("a,b,score,stderr,low,high\n3,4,")
    assert index.similarities(a, b).to_arrow().num_rows == 3
    assert len(index.similarities(a, b).to_polars()) == 3
    assert len(index.similarities([], [])) == 0


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ((["3"], ["none"]), {}, "no node is named 'none'"),
        ((["3", "x", "y", "x"], ["z", "w", "4", "v"]), {}, "2 of the names are not nodes: 'x'"),
        ((["3"], ["4", "5"]), {}, "a has 1 names and b has 2"),
        (("ab",), {}, "pairs is str"),
        ((["3"], "4"), {}, "b is a single string"),
        ((np.zeros((2, 3)),), {}, "the shape (2, 3)"),
        (([("3",)],), {}, "row 0 (counting from 0) is ('3',)"),
        ((3,), {}, "pairs is int"),
        (([1], [2000]), {"ids": True}, "ids are 0 to"),
        (([1.0], [2.0]), {"ids": True}, "a contains float64"),
        (([1], [2]), {"threads": 0}, "threads"),
        ((["3"], ["4"]), {"confidence": 2}, "confidence is 2"),
    ],
)
def test_similarities_reject_invalid_input(
    links: Index, given: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        links.similarities(*given, **options)
    assert message in str(caught.value)
    assert isinstance(caught.value, UnknownNode) == (message.startswith("no node"))


def test_similarities_report_wholly_damaged_index(make_graph: MakeGraph, tmp_path: Path) -> None:
    path = tmp_path / "x"
    cocite.build(make_graph(EDGES), path, samples=3, measure="simrank")
    file = path / "in.positions"
    file.write_bytes(b"\xfd" * file.stat().st_size)
    index = cocite.open(path, verify=False)
    with pytest.raises(Damaged):
        batch_scores(index)
