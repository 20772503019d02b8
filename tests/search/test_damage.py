"""Files that were damaged after they were opened, or by somebody who signed them: no question ends
the process, answers with what is no number, or leaves anything behind for the next.
"""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import Damaged
from cocite.graph.name_files import match_names
from cocite.graph.names import Names
from cocite.index import StoredIndex
from cocite.kernels.trees import SOUND, gather
from cocite.search.source import find_graph
from tests.conftest import MakeGraph, by_walks, of_texts
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
    """An index of each kind, and two graphs that are asked themselves."""
    weighted = make_graph(edges(1), weight_column="3")
    plain = make_graph([edge[:2] for edge in edges(1)])
    newer = make_graph([edge[:2] for edge in edges(2)])
    found = {"graph": plain.path, "weighted graph": weighted.path}
    for name, kind in INDEXES.items():
        graph, options = weighted if name in WEIGHTED else plain, by_walks(kind)
        cocite.build(graph, tmp_path / name, **options, **of_texts(graph, options["measure"]))
        found[name] = tmp_path / name
    cocite.refresh(tmp_path / "refreshed", newer, fraction=0.5, force=True)
    return found


def fuzz(seed: int, count: int, *stores: Path) -> list[dict[str, Any]]:
    """Damage, ask, mend, again and again, in another process: see ``fuzz.py``."""
    command = [sys.executable, "-m", "tests.search.fuzz", str(seed), str(count), *map(str, stores)]
    path = os.pathsep.join([*filter(None, sys.path), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, (done.returncode, done.stdout[-300:], done.stderr[-2000:])
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.process
def test_no_damage_ends_the_process(stores: dict[str, Path]) -> None:
    found = fuzz(1, 120, *stores.values())
    assert len(found) == len(stores)
    for each in found:
        assert each["answered"] > 100, each
        assert each["damaged"] > 0, each


@pytest.mark.process
def test_no_bit_of_the_blocks_of_names_ends_the_process(stores: dict[str, Path]) -> None:
    bits = 8 * (stores["trees"] / "names.blocks").stat().st_size
    assert bits == 3 * 64
    (found,) = fuzz(1, 0, stores["trees"])
    assert found["damaged"] > bits


def put(array: np.ndarray, place: int, value: int) -> np.ndarray:
    array[place] = value
    return array


DAMAGED_NAMES: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray], Callable[[Names], Any]]] = {
    f"block {block} at {to}": (
        "names.blocks",
        lambda blocks, block=block, to=to: put(blocks, block, to),
        lambda names, block=block: names.name(16 * block),
    )
    for block, to in itertools.product((1, 2), (2**31, 2**40, 2**63, 2**64 - 1))
} | {
    "no text": ("names.data", lambda data: put(data, 5, 0xFF), lambda names: names.name(0)),
    "hashes": ("names.by_hash", lambda ids: ids | (2**32 - 1), lambda names: names.find("page 3")),
    "order": ("names.by_name", lambda ids: ids | (2**32 - 1), lambda n: n.with_prefix("page")),
}
"""What is damaged: the file, how it changes, and a question that reads it."""


@pytest.mark.parametrize("kind", DAMAGED_NAMES)
def test_damaged_names_are_an_error(make_graph: MakeGraph, kind: str) -> None:
    graph, (file, changed, ask) = make_graph([], NAMES), DAMAGED_NAMES[kind]
    change_file(graph.path, file, changed(np.array(graph.store.array(file))))
    names = Graph.open(graph.path).names
    with pytest.raises(Damaged, match="its names are damaged"):
        ask(names)


def test_hashes_out_of_order_are_damage_when_graphs_are_matched(make_graph: MakeGraph) -> None:
    graph, newer = make_graph([], NAMES), make_graph([], [*NAMES, "more"])
    hashes = np.array(graph.store.array("names.hashes"))
    change_file(graph.path, "names.hashes", hashes[::-1])
    names = Graph.open(graph.path).names
    for pair in ((names, newer.names), (newer.names, names)):
        with pytest.raises(Damaged, match="its names are damaged"):
            match_names(*pair)


def test_a_list_of_sums_that_is_full_is_damage() -> None:
    """A sum that comes to 0 again in 64 bits makes a node new once more, so there may be too many.

    Two nodes that met, in one sample; more sums than nodes are listed when it is added up.
    """
    words = np.zeros(80, np.uint32)
    words[:4], words[2 + 64] = (0, 1, 0, 1), 0x10
    table = np.array([[0, 8, 0, 0]], np.uint64) + np.uint64(words.ctypes.data)
    table[0, 2:], weights = (1, 2), np.ones((16, 2), np.uint64)
    table.flags.writeable = weights.flags.writeable = False  # as those of an index are
    for count, found, status in ((0, 1, SOUND), (2, 3, SOUND), (3, 3, 0)):
        sums, used = np.zeros((2, 2), np.uint64), np.zeros(5, np.uint32)
        progress = np.array([0, count, 1 << 20], np.uint64)
        assert gather(table, np.uint32(0), weights, sums, used, progress) == status
        assert progress[1] == found


def test_more_members_than_nodes_are_damage(make_graph: MakeGraph, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
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
def test_what_is_no_number_is_never_answered(
    make_graph: MakeGraph, tmp_path: Path, measure: str, name: str, value: float
) -> None:
    graph = make_graph(edges(1), weight_column="3")
    cocite.build(graph, tmp_path / "x", measure=measure, unweighted=measure != "ppr")
    (file,) = (f.name for f in (tmp_path / "x").iterdir() if f.name.split(".", 1)[-1] == name)
    array = np.array(cocite.open(tmp_path / "x").stored.store.array(file))
    change_file(tmp_path / "x", file, np.full_like(array, value))
    index = cocite.open(tmp_path / "x")
    whole = cocite.build(graph.path, measure="simrank", unweighted=True)
    before, asked = whole.related("page 3"), {"idf": True} if measure == "cocitation" else {}
    for ask in (
        lambda: index.related("page 3", **asked),
        lambda: [index.similarity("page 3", other) for other in NAMES],
    ):
        try:
            found = [x for hit in ask() for x in hit if isinstance(x, float)]
        except Damaged:
            continue
        assert np.isfinite(found).all()
    assert whole.related("page 3") == before


def test_signed_but_wrong_diagonal_is_damage(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([edge[:2] for edge in edges(1)])
    cocite.build(graph, tmp_path / "x", measure="simrank", samples=2, refine=True)
    table = np.array(cocite.open(tmp_path / "x").stored.store.array("in.diagonal"))
    for row, column, value in ((3, 0, np.nan), (3, 0, 1.5), (0, 3, 1e30), (1, 1, -0.5)):
        other = table.copy()
        other[row, column] = value
        change_file(tmp_path / "x", "in.diagonal", other)
        with pytest.raises(Damaged, match=r"in\.diagonal is damaged"):
            cocite.open(tmp_path / "x").related("page 3", refine=True)


def test_the_graph_of_an_index_has_as_many_nodes(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([edge[:2] for edge in edges(1)])
    other = make_graph([("a", "b")])
    cocite.build(graph, tmp_path / "x", measure="simrank", samples=2)
    change_facts(tmp_path / "x", "graph", "digest", to=other.digest)
    with pytest.raises(Damaged):
        find_graph(StoredIndex.open(tmp_path / "x"), other)
    with pytest.raises(Damaged):
        cocite.open(tmp_path / "x", graph=other).related("page 3", refine=True)


def test_weighted_reasons_check_their_graph(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([edge[:2] for edge in edges(1)])
    index = cocite.build(graph, tmp_path / "x", samples=9, hubs="idf", measure="psimrank")
    first = next(name for name in NAMES if index.related(name, 1))
    other = index.related(first, 1)[0].node
    assert index.why(first, other).reasons
    sources = np.array(graph.store.array("in_sources"))
    sources[-1] = 2**32 - 1
    sources.tofile(graph.path / "in_sources")
    for verify, told in ((True, "in_sources has checksum"), (False, "its links are invalid")):
        found = Graph.open(graph.path, verify=verify)
        with pytest.raises(Damaged, match=told):
            cocite.open(tmp_path / "x", graph=found).why(first, other)
