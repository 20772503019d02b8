"""Scans against their definition: every way of scanning is equal to the bit."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import cocite
from cocite import Graph
from cocite.engine import plan as scan_plan
from cocite.engine.partitions import BlocksScan, ScanBlock
from cocite.engine.plan import Way, plan_scan
from cocite.engine.scan import Fold, Scan
from cocite.errors import ResourceError
from cocite.graph.blocks import Links
from cocite.graph.links import in_links
from cocite.resources import Resources
from tests.conftest import MakeGraph
from tests.index.test_partitioned import Posted
from tests.marks import choose
from tests.oracles import scan as exact
from tests.oracles.graphs import Edges, graphs, in_neighbors

DTYPES = {"uint32": (1, 16), "float64": (1, 8)}
MOST = {name: max(lanes) for name, lanes in DTYPES.items()}


def values(shape: tuple[int, ...], dtype: str, seed: int) -> NDArray[Any]:
    """Values that use all bits: float sums depend on their order, integer sums overflow."""
    rng = np.random.default_rng(seed)
    if dtype == "uint32":
        return rng.integers(0, 2**32, shape, np.uint32)
    signs = rng.choice([-1.0, 1.0], shape)
    return np.asarray(signs * 10 ** rng.uniform(-6, 6, shape), dtype)


def same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def scan_of(links: Links, lanes: int = 1, dtype: Any = np.float64, **limits: Any) -> Scan:
    plan = plan_scan(links, Resources.checked(**limits), lanes=lanes, dtype=dtype)
    return Scan(links, plan)


def neighbors_of(graph: Graph) -> list[list[int]]:
    return [graph.in_neighbors(v).tolist() for v in range(graph.nodes)]


def blocks_scan(links: Links, cuts: list[int], lanes: int, dtype: str) -> BlocksScan:
    """Partitions of these links that exchange all values by pickles."""
    arguments = []
    for first, last in pairwise(cuts):
        begin, end = (int(links.offsets[node]) for node in (first, last))
        offsets = links.offsets[first : last + 1] - np.uint64(begin)
        offsets.flags.writeable = False
        partition = offsets, links.neighbors[begin:end], first
        arguments.append((*partition, np.array(cuts, np.uint32), lanes, dtype))
    return BlocksScan(Posted(ScanBlock, arguments), links.nodes)


@settings(max_examples=150)
@given(
    graphs(max_nodes=30),
    st.sampled_from(sorted(DTYPES)),
    st.sampled_from([1, 16]),
    st.sampled_from(list(Fold)),
    st.booleans(),
    st.sampled_from([None, 1, 2, 7, 64]),
    st.integers(1, 2),
    st.lists(st.integers(1, 29), max_size=5),
    st.integers(0, 99),
)
def test_scan_and_blocks_scan_equal_definition(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    dtype: str,
    lanes: int,
    fold: Fold,
    started: bool,
    blocks: int | None,
    threads: int,
    cuts: list[int],
    seed: int,
) -> None:
    """Two scans: in partitions, the second begins with messages of the first."""
    n, edges = graph
    lanes = min(lanes, MOST[dtype])
    links = in_links(make_graph(edges, range(n)))
    scan = scan_of(links, lanes=lanes, dtype=dtype, blocks=blocks, threads=threads)
    assert scan.plan.way is (Way.MEMORY if blocks is None else Way.BLOCKS)
    x = values(scan.shape, dtype, seed)
    initial = values(scan.shape, dtype, seed + 1)
    truth = exact.scan(in_neighbors(n, edges), x, fold.value, initial)
    assert same(scan(x, fold, start=initial), truth)
    bounds = [0, *sorted({cut for cut in cuts if cut < n}), n]
    parts = blocks_scan(links, bounds, lanes, dtype)
    parts.begin("begin", [(x[a:b],) for a, b in pairwise(bounds)])
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(2):
            truth = exact.scan(in_neighbors(n, edges), x, fold.value, x if started else None)
            found = scan(x, fold, start=x if started else None)
            assert same(found, truth)
            parts.step("scan", fold.value, started)
            crew = parts.crew
            own = [crew.take(crew.call(b, "values"))[0] for b in range(crew.size)]
            assert np.concatenate(own).reshape(x.shape).tobytes() == found.tobytes()
            x = found
    assert parts.traffic.steps == 2


def test_blocks_scan_sends_value_once_to_each_reader(make_graph: MakeGraph) -> None:
    edges = [(0, 2), (0, 3), (1, 3), (0, 4), (5, 4), (4, 0), (4, 5)]
    graph = make_graph(edges, range(6))
    names = [int(graph.names.name(node)) for node in range(6)]
    ends = [(names.index(a), names.index(b)) for a, b in edges]
    readers = {(a, b // 2) for a, b in ends if a // 2 != b // 2}
    for cuts, expected in (([0, 2, 4, 6], 8 * len(readers)), ([0, 6], 0)):
        parts = blocks_scan(in_links(graph), cuts, 2, "uint32")
        parts.begin("begin", [(np.zeros((b - a, 2), np.uint32),) for a, b in pairwise(cuts)])
        assert parts.traffic.values == expected
    assert readers


NODES = 3000


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """A graph with hubs and nodes without in-links, large enough for many strips and windows."""
    folder = tmp_path_factory.mktemp("scan")
    rng = np.random.default_rng(6)
    targets = np.minimum(rng.zipf(1.4, 40_000), NODES + 500) * 7 % NODES
    links = np.column_stack([rng.integers(0, NODES, targets.size), targets])
    np.savetxt(folder / "links", links, "%d", "\t")
    (folder / "nodes").write_text("".join(f"{node}\n" for node in range(NODES)))
    graph = cocite.ingest(
        folder / "links", folder / "g", nodes=folder / "nodes", delimiter="tab", header="no"
    )
    degrees = np.diff(graph.in_offsets)
    assert (degrees == 0).any()
    assert degrees.max() > 1000
    return graph


RUNS = [
    (1, 60_000, None),
    (2, 230_000, None),
    (1, 480_000, None),
    (3, 10**7, None),
    (1, 10**7, 1),
    (3, 10**7, 2),
    (3, 10**7, 64),
    (2, 25_000, None),
    (1, 50_000, 2),
]
"""Threads, memory, blocks."""


@pytest.mark.long
@pytest.mark.parametrize("dtype", choose(sorted(DTYPES), "float64"))
@pytest.mark.parametrize("fold", list(Fold))
def test_scan_ignores_blocks_threads_and_memory(
    web: Graph, monkeypatch: pytest.MonkeyPatch, dtype: str, fold: Fold
) -> None:
    monkeypatch.setattr(scan_plan, "LEAST_SHARE", 2000)
    for lanes in (1, MOST[dtype]):
        default = scan_of(in_links(web), lanes=lanes, dtype=dtype, threads=1)
        x, start = (values(default.shape, dtype, seed) for seed in (3, 4))
        truth = exact.scan(neighbors_of(web), x, fold.value, start)
        assert same(default(x, fold, start=start), truth)
        ways = set()
        for threads, memory, blocks in RUNS:
            scan = scan_of(
                in_links(web),
                lanes=lanes,
                dtype=dtype,
                threads=threads,
                memory=memory,
                blocks=blocks,
            )
            ways.add(scan.plan.way)
            assert same(scan(x, fold, start=start), truth), scan.plan
        assert ways == set(Way)


@pytest.mark.parametrize("blocks", [None, 3])
def test_scan_out_may_be_start(web: Graph, blocks: int | None) -> None:
    scan = scan_of(in_links(web), lanes=16, dtype=np.uint32, blocks=blocks)
    x = values(scan.shape, "uint32", 1)
    start = x.copy()
    found = scan(x, Fold.MIN, start=start, out=start)
    assert found is start
    assert same(start, exact.scan(neighbors_of(web), x, "min", x))


@pytest.mark.parametrize("blocks", [None, 3])
def test_scan_min_and_max_skip_nan(make_graph: MakeGraph, blocks: int | None) -> None:
    scan = scan_of(in_links(make_graph([(0, 2), (1, 2), (0, 1)])), dtype=np.float64, blocks=blocks)
    x = np.array([np.nan, 3.0, 5.0])
    assert scan(x, Fold.MIN).tolist() == [np.inf, np.inf, 3.0]
    assert scan(x, Fold.MAX).tolist() == [-np.inf, -np.inf, 3.0]
    assert np.isnan(scan(x, Fold.SUM)).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("dtype", "identities"),
    [
        ("uint32", (0, 2**32 - 1, 0)),
        ("float32", (0.0, np.inf, -np.inf)),
        ("float64", (0.0, np.inf, -np.inf)),
    ],
)
def test_fold_identity_for_each_dtype(dtype: str, identities: tuple[float, ...]) -> None:
    found = [fold.identity(dtype) for fold in Fold]
    assert tuple(found) == identities
    assert {value.dtype.name for value in found} == {dtype}


def test_plan_scan_reports_needed_memory(web: Graph) -> None:
    with pytest.raises(
        ResourceError,
        match=r"needs 4\.2 MB of memory, with any number of blocks; the limit is 200 kB",
    ):
        scan_of(in_links(web), memory="200kB", lanes=8)
