"""Files damaged after they were opened, or damaged and then signed: no query ends the process,
returns NaN, or affects later queries.
"""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph, Index
from cocite.errors import Damaged
from cocite.graph.name_files import match_names
from cocite.graph.names import Names
from cocite.index import StoredIndex
from cocite.kernels.trees import SOUND, gather
from cocite.search.source import find_graph
from tests.conftest import MakeGraph, measure_texts, with_psimrank
from tests.storage.enemy import change_facts, change_file

ROOT = Path(__file__).parents[2]
NAMES = [f"http://s{i % 5}.org/p{i}" for i in range(24)] + [f"page {i}" for i in range(16)]
INDEXES: dict[str, dict[str, Any]] = {
    "trees": {"samples": 6, "length": 5},
    "both": {"samples": 6, "length": 5, "direction": "both", "measure": "simrank", "refine": True},
    "weighted": {"samples": 6, "length": 5},
    "hubs": {"samples": 6, "length": 5, "hubs": "idf", "unweighted": True},
    "paths": {"samples": 6, "length": 5, "layout": "paths"},
    "packed": {"samples": 6, "length": 5, "layout": "packed"},
    "compact": {"samples": 6, "length": 5, "measure": "compact-simrank"},
    "minhash": {"samples": 6, "length": 3, "measure": "xjaccard"},
    "sketch": {"samples": 6, "length": 3, "measure": "xjaccard", "bits": 2},
    "cocitation": {"measure": "cocitation"},
    "ppr": {"measure": "ppr", "unweighted": True},
    "weighted-ppr": {"measure": "ppr"},
    "features": {"measure": "pagesim"},
    "nearest": {"measure": "snn", "neighbors": 6},
    "rows": {"measure": "fusion", "size": "small"},
    "text": {"measure": "tfidf"},
    "blend": {"measure": "blend:psimrank+cocitation(idf=true)+xjaccard(bits=1)", "samples": 6},
    "kept": {"samples": 6, "length": 5, "only_prefix": "page", "shard": 2},
    "refreshed": {"samples": 6, "length": 5},
}
WEIGHTED = "weighted", "weighted-ppr"


def edges(seed: int) -> list[tuple[str, str, int]]:
    rng = np.random.default_rng(seed)
    pairs = {(a, b) for a, b in rng.integers(0, 40, (150, 2)).tolist() if a != b}
    return [(NAMES[a], NAMES[b], 1 + a % 3) for a, b in sorted(pairs)]


@pytest.fixture
def stores(make_graph: MakeGraph, tmp_path: Path) -> dict[str, Path]:
    """An index of each kind, and two graphs that are queried directly."""
    weighted = make_graph(edges(1), weight_column="3")
    unweighted = make_graph([edge[:2] for edge in edges(1)])
    newer = make_graph([edge[:2] for edge in edges(2)])
    paths = {"graph": unweighted.path, "weighted graph": weighted.path}
    for name, settings in INDEXES.items():
        graph, options = weighted if name in WEIGHTED else unweighted, with_psimrank(settings)
        cocite.build(graph, tmp_path / name, **options, **measure_texts(graph, options["measure"]))
        paths[name] = tmp_path / name
    cocite.refresh(tmp_path / "refreshed", newer, fraction=0.5, force=True)
    return paths


def fuzz(seed: int, count: int, *stores: Path) -> list[dict[str, Any]]:
    """Damage, query and restore stores in another process: see ``fuzz.py``."""
    command = [sys.executable, "-m", "tests.search.fuzz", str(seed), str(count), *map(str, stores)]
    path = os.pathsep.join([*filter(None, sys.path), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": path}
    finished = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert finished.returncode == 0, (
        finished.returncode,
        finished.stdout[-300:],
        finished.stderr[-2000:],
    )
    return [json.loads(line) for line in finished.stdout.splitlines() if line.startswith("{")]


@pytest.mark.process
def test_queries_survive_damaged_files(stores: dict[str, Path]) -> None:
    reports = fuzz(1, 120, *stores.values())
    assert len(reports) == len(stores)
    for report in reports:
        assert report["answered"] > 100, report
        assert report["damaged"] > 0, report


@pytest.mark.process
def test_queries_survive_flipped_bits_in_name_blocks(stores: dict[str, Path]) -> None:
    bits = 8 * (stores["trees"] / "names.blocks").stat().st_size
    assert bits == 3 * 64
    (report,) = fuzz(1, 0, stores["trees"])
    assert report["damaged"] > bits


def set_item(array: np.ndarray, position: int, value: int) -> np.ndarray:
    array[position] = value
    return array


DAMAGED_NAMES: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray], Callable[[Names], Any]]] = {
    f"block {block} at {to}": (
        "names.blocks",
        lambda blocks, block=block, to=to: set_item(blocks, block, to),
        lambda names, block=block: names.name(16 * block),
    )
    for block, to in itertools.product((1, 2), (2**31, 2**40, 2**63, 2**64 - 1))
} | {
    "no text": ("names.data", lambda data: set_item(data, 5, 0xFF), lambda names: names.name(0)),
    "hashes": ("names.by_hash", lambda ids: ids | (2**32 - 1), lambda names: names.find("page 3")),
    "order": ("names.by_name", lambda ids: ids | (2**32 - 1), lambda n: n.with_prefix("page")),
}
"""The file to damage, the change, and a query that reads it."""


@pytest.mark.parametrize("kind", DAMAGED_NAMES)
def test_names_report_damage(make_graph: MakeGraph, kind: str) -> None:
    graph, (file, change, query) = make_graph([], NAMES), DAMAGED_NAMES[kind]
    change_file(graph.path, file, change(np.array(graph.store.array(file))))
    names = Graph.open(graph.path).names
    with pytest.raises(Damaged, match="its names are damaged"):
        query(names)


def test_match_names_reports_unsorted_hashes(make_graph: MakeGraph) -> None:
    graph, newer = make_graph([], NAMES), make_graph([], [*NAMES, "more"])
    hashes = np.array(graph.store.array("names.hashes"))
    change_file(graph.path, "names.hashes", hashes[::-1])
    names = Graph.open(graph.path).names
    for pair in ((names, newer.names), (newer.names, names)):
        with pytest.raises(Damaged, match="its names are damaged"):
            match_names(*pair)


def test_trees_gather_reports_full_sums() -> None:
    """A sum that overflows to 0 makes its node look new, so that the list of sums may overflow.

    Two nodes met in one sample, and more sums than nodes are already listed.
    """
    words = np.zeros(80, np.uint32)
    words[:4], words[2 + 64] = (0, 1, 0, 1), 0x10
    table = np.array([[0, 8, 0, 0]], np.uint64) + np.uint64(words.ctypes.data)
    table[0, 2:], weights = (1, 2), np.ones((16, 2), np.uint64)
    table.flags.writeable = weights.flags.writeable = False  # like the arrays of an index
    for count, found, status in ((0, 1, SOUND), (2, 3, SOUND), (3, 3, 0)):
        sums, used = np.zeros((2, 2), np.uint64), np.zeros(5, np.uint32)
        progress = np.array([0, count, 1 << 20], np.uint64)
        assert gather(table, np.uint32(0), weights, sums, used, progress) == status
        assert progress[1] == found


def test_trees_layout_reports_too_many_members(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([(0, 1), (0, 2)], range(32))
    cocite.build(graph, tmp_path / "x", measure="simrank", samples=1)
    words = np.full(80, 1, np.uint32)
    words[64:] = 0x11111110
    change_file(tmp_path / "x", "in.samples-000000", words)
    change_file(tmp_path / "x", "in.positions", np.arange(32, dtype=np.uint32).reshape(32, 1))
    change_file(tmp_path / "x", "in.members", np.array([40], np.uint32))
    index = cocite.open(tmp_path / "x")
    with pytest.raises(Damaged):
        index.related("0")
    with pytest.raises(Damaged):
        index.related_all(tmp_path / "all.csv")


@pytest.fixture(scope="module")
def intact(module_graph: MakeGraph) -> Index:
    return cocite.build(module_graph([edge[:2] for edge in edges(1)]), measure="simrank", samples=5)


@pytest.mark.parametrize(
    ("measure", "name"),
    [
        ("cocitation", "norms"),
        ("pagesim", "holders.values"),
        ("pagesim", "features.values"),
        ("pagesim", "cut"),
        ("snn", "nearest.values"),
        ("snn", "holders.values"),
        ("snn", "norms"),
        ("fusion", "weights"),
        ("ppr", "out_weights"),
    ],
)
def test_queries_never_return_nan_or_infinity(
    make_graph: MakeGraph, tmp_path: Path, intact: Index, measure: str, name: str
) -> None:
    graph = make_graph(edges(1), weight_column="3")
    cocite.build(graph, tmp_path / "x", measure=measure, unweighted=measure != "ppr")
    (file,) = (f.name for f in (tmp_path / "x").iterdir() if f.name.split(".", 1)[-1] == name)
    array = np.array(cocite.open(tmp_path / "x").stored.store.array(file))
    expected, options = intact.related("page 3"), {"idf": True} if measure == "cocitation" else {}
    queries: list[Callable[[Index], Iterable[Any]]] = [
        lambda index: index.related("page 3", **options),
        lambda index: [index.similarity("page 3", other) for other in NAMES[::3]],
    ]
    for value in (np.nan, np.inf, -np.inf):
        change_file(tmp_path / "x", file, np.full_like(array, value))
        index = cocite.open(tmp_path / "x")
        for query in queries:
            try:
                numbers = [x for hit in query(index) for x in hit if isinstance(x, float)]
            except Damaged:
                continue
            assert np.isfinite(numbers).all()
        assert intact.related("page 3") == expected


def test_refine_reports_invalid_diagonal(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([edge[:2] for edge in edges(1)])
    cocite.build(graph, tmp_path / "x", measure="simrank", samples=2, refine=True)
    table = np.array(cocite.open(tmp_path / "x").stored.store.array("in.diagonal"))
    for row, column, value in ((3, 0, np.nan), (3, 0, 1.5), (0, 3, 1e30), (1, 1, -0.5)):
        damaged = table.copy()
        damaged[row, column] = value
        change_file(tmp_path / "x", "in.diagonal", damaged)
        with pytest.raises(Damaged, match=r"in\.diagonal is damaged"):
            cocite.open(tmp_path / "x").related("page 3", refine=True)


def test_find_graph_checks_node_count(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([edge[:2] for edge in edges(1)])
    other = make_graph([("a", "b")])
    cocite.build(graph, tmp_path / "x", measure="simrank", samples=2)
    change_facts(tmp_path / "x", "graph", "digest", to=other.digest)
    with pytest.raises(Damaged):
        find_graph(StoredIndex.open(tmp_path / "x"), other)
    with pytest.raises(Damaged):
        cocite.open(tmp_path / "x", graph=other).related("page 3", refine=True)


def test_why_hubs_checks_graph_links(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([edge[:2] for edge in edges(1)])
    index = cocite.build(graph, tmp_path / "x", samples=9, hubs="idf", measure="psimrank")
    first = next(name for name in NAMES if index.related(name, 1))
    other = index.related(first, 1)[0].node
    assert index.why(first, other).reasons
    sources = np.array(graph.store.array("in_sources"))
    sources[-1] = 2**32 - 1
    sources.tofile(graph.path / "in_sources")
    for verify, message in ((True, "in_sources has checksum"), (False, "its links are invalid")):
        reopened = Graph.open(graph.path, verify=verify)
        with pytest.raises(Damaged, match=message):
            cocite.open(tmp_path / "x", graph=reopened).why(first, other)
