"""Scans against their definition, and every way of scanning against every other, to the bit."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
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
from cocite.errors import ResourceError, UsageError
from cocite.graph.blocks import Links
from cocite.graph.links import in_links
from cocite.resources import Resources, format_size
from tests.conftest import MakeGraph
from tests.index.test_in_blocks import Posted
from tests.oracles import scan as exact
from tests.oracles.graphs import Edges, graphs, in_neighbors

DTYPES = {"uint32": (1, 16), "float64": (1, 8)}
MOST = {name: max(lanes) for name, lanes in DTYPES.items()}


def values(shape: tuple[int, ...], dtype: str, seed: int) -> NDArray[Any]:
    """All bits in use: sums of floats depend on their order, those of integers overflow."""
    rng = np.random.default_rng(seed)
    if dtype == "uint32":
        return rng.integers(0, 2**32, shape, np.uint32)
    signs = rng.choice([-1.0, 1.0], shape)
    return np.asarray(signs * 10 ** rng.uniform(-6, 6, shape), dtype)


def same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def scan_of(
    links: Links,
    lanes: int = 1,
    dtype: Any = np.float64,
    **means: Any,
) -> Scan:
    plan = plan_scan(links, Resources.checked(**means), lanes=lanes, dtype=dtype)
    return Scan(links, plan)


def neighbors_of(graph: Graph) -> list[list[int]]:
    return [graph.in_neighbors(v).tolist() for v in range(graph.nodes)]


def conductor(links: Links, cuts: list[int], lanes: int, dtype: str) -> BlocksScan:
    """Partitions of these links, which exchange all values by pickles."""
    arguments = []
    for first, last in pairwise(cuts):
        begin, end = (int(links.offsets[node]) for node in (first, last))
        offsets = links.offsets[first : last + 1] - np.uint64(begin)
        offsets.flags.writeable = False
        own = offsets, links.neighbors[begin:end], first
        arguments.append((*own, np.array(cuts, np.uint32), lanes, dtype))
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
def test_a_scan_is_what_its_definition_says_in_all_forms(
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
    """Two scans, as in partitions the second begins with messages of the first."""
    n, edges = graph
    lanes = min(lanes, MOST[dtype])
    links = in_links(make_graph(edges, range(n)))
    scan = scan_of(links, lanes=lanes, dtype=dtype, blocks=blocks, threads=threads)
    assert scan.plan.way is (Way.MEMORY if blocks is None else Way.BLOCKS)
    x = values(scan.shape, dtype, seed)
    other = values(scan.shape, dtype, seed + 1)
    truth = exact.scan(in_neighbors(n, edges), x, fold.value, other)
    assert same(scan(x, fold, start=other), truth)
    bounds = [0, *sorted({cut for cut in cuts if cut < n}), n]
    parts = conductor(links, bounds, lanes, dtype)
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


def test_a_value_is_sent_once_to_each_partition_that_reads_it(make_graph: MakeGraph) -> None:
    edges = [(0, 2), (0, 3), (1, 3), (0, 4), (5, 4), (4, 0), (4, 5)]
    graph = make_graph(edges, range(6))
    names = [int(graph.names.name(node)) for node in range(6)]
    ends = [(names.index(a), names.index(b)) for a, b in edges]
    read = {(a, b // 2) for a, b in ends if a // 2 != b // 2}
    for cuts, sent in (([0, 2, 4, 6], 8 * len(read)), ([0, 6], 0)):
        parts = conductor(in_links(graph), cuts, 2, "uint32")
        parts.begin("begin", [(np.zeros((b - a, 2), np.uint32),) for a, b in pairwise(cuts)])
        assert parts.traffic.values == sent
    assert read


NODES = 3000


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """With hubs, nodes without in-links, and strips and windows of which it takes many."""
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
    *((threads, memory, None) for threads in (1, 2) for memory in (60_000, 230_000, 480_000)),
    *((threads, 10**7, blocks) for threads in (1, 3) for blocks in (None, 1, 2, 7, 64)),
    (2, 25_000, None),
    (1, 50_000, 2),
]
"""Threads, memory, blocks."""


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("fold", list(Fold))
def test_blocks_threads_and_budgets_do_not_change_a_bit(
    web: Graph, monkeypatch: pytest.MonkeyPatch, dtype: str, fold: Fold
) -> None:
    monkeypatch.setattr(scan_plan, "LEAST_SHARE", 2000)
    for lanes in (1, MOST[dtype]):
        whole = scan_of(in_links(web), lanes=lanes, dtype=dtype, threads=1)
        x, start = (values(whole.shape, dtype, seed) for seed in (3, 4))
        truth = exact.scan(neighbors_of(web), x, fold.value, start)
        assert same(whole(x, fold, start=start), truth)
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


def test_strips_and_windows_are_several(web: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards it: or the merging of strips would not be tested."""
    monkeypatch.setattr(scan_plan, "LEAST_SHARE", 2000)
    plan = scan_of(in_links(web), lanes=16, dtype=np.uint32, threads=2, memory=25_000).plan
    assert (plan.way, plan.threads) == (Way.BLOCKS, 2)
    assert plan.blocks > 30
    assert plan.strip * plan.blocks < web.edges / 2
    assert plan.window < web.nodes / 10


def test_more_memory_means_fewer_blocks(web: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_plan, "LEAST_SHARE", 2000)
    plans = {
        memory: scan_of(in_links(web), lanes=16, dtype=np.uint32, threads=2, memory=memory).plan
        for memory in (3000, 25_000, 60_000, 450_000, 700_000)
    }
    assert plans[3000].threads == 1
    assert plans[3000].blocks > plans[25_000].blocks > plans[60_000].blocks > 1
    assert [plans[m].way for m in (60_000, 450_000, 700_000)] == [
        Way.BLOCKS,
        Way.STREAMED,
        Way.MEMORY,
    ]
    scratch = format_size(8 * web.edges + 128 * NODES)
    taken = {memory: format_size(plan.memory) for memory, plan in plans.items()}
    assert str(plans[3000]).startswith(
        f"{taken[3000]} of memory on 1 thread (of 2: the memory given holds no more), "
        f"{plans[3000].blocks} blocks of destinations from disk: a scan reads "
    )
    assert str(plans[3000]).endswith(f" and {scratch} of scratch are taken")
    links = format_size(8 * (NODES + 1) + 4 * web.edges)
    assert str(plans[450_000]) == (
        f"{taken[450_000]} of memory on 2 threads, which holds x and y; "
        f"the links, {links}, from disk"
    )
    assert str(plans[700_000]) == (
        f"{taken[700_000]} of memory on 2 threads, which holds the links, x and y"
    )


def test_what_a_scan_reads_is_what_it_says(web: Graph) -> None:
    scan = scan_of(in_links(web), lanes=16, dtype=np.uint32, blocks=5, threads=1)
    heads = sum(
        np.unique(web.in_sources[int(a) : int(b)]).size
        for a, b in zip(web.in_offsets[:-1:600], web.in_offsets[600::600], strict=True)
    )
    assert scan.plan.blocks == 5
    assert scan.plan.reads == 5 * 64 * web.nodes + 4 * (web.edges + heads)


@pytest.mark.parametrize("blocks", [None, 3])
def test_out_may_be_start_and_is_returned(web: Graph, blocks: int | None) -> None:
    scan = scan_of(in_links(web), lanes=16, dtype=np.uint32, blocks=blocks)
    x = values(scan.shape, "uint32", 1)
    own = x.copy()
    found = scan(x, Fold.MIN, start=own, out=own)
    assert found is own
    assert same(own, exact.scan(neighbors_of(web), x, "min", x))


@pytest.mark.parametrize("blocks", [None, 3])
def test_what_is_not_a_number_is_passed_over(make_graph: MakeGraph, blocks: int | None) -> None:
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
def test_identities(dtype: str, identities: tuple[float, ...]) -> None:
    found = [fold.identity(dtype) for fold in Fold]
    assert tuple(found) == identities
    assert {value.dtype.name for value in found} == {dtype}


def test_rows_in_memory_are_cache_lines_and_those_on_disk_have_no_name(web: Graph) -> None:
    assert scan_of(in_links(web), lanes=8, dtype=np.float64).vector().ctypes.data % 64 == 0
    files = sorted(web.path.iterdir())
    scan = scan_of(in_links(web), lanes=8, dtype=np.float64, blocks=2)
    vector = scan.vector()
    assert vector.flags.writeable
    assert not vector.any()
    assert sorted(web.path.iterdir()) == files


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lanes": 0}, "lanes is 0; it must be 1 or 8 for float64"),
        ({"lanes": 8, "dtype": "uint32"}, "1 or 16 for uint32"),
        ({"lanes": True}, "lanes is True"),
        ({"dtype": "int64"}, "dtype is int64; it must be uint32 or float64"),
        ({"blocks": 0}, "blocks is 0"),
        ({"threads": 0}, "threads is 0"),
    ],
)
def test_wrong_use_is_refused(web: Graph, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        scan_of(in_links(web), **options)


def test_wrong_arrays_are_refused(web: Graph) -> None:
    scan = scan_of(in_links(web), lanes=8, dtype=np.float64)
    x = scan.vector()
    for wrong in (
        np.zeros((NODES, 3), np.float64),
        x.astype(np.float32),
        np.zeros(NODES, np.float64),
    ):
        with pytest.raises(UsageError, match=r"x is float.*this scan takes contiguous float64\["):
            scan(wrong, Fold.SUM)
    with pytest.raises(UsageError, match="start is float64"):
        scan(x, Fold.SUM, start=np.asfortranarray(np.zeros((NODES, 8), np.float64)))
    with pytest.raises(UsageError, match="out is x"):
        scan(x, Fold.SUM, out=x)
    fixed = scan.vector()
    fixed.flags.writeable = False
    with pytest.raises(UsageError, match="read-only"):
        scan(x, Fold.SUM, out=fixed)


def test_too_little_memory_is_an_error_that_says_how_much(web: Graph) -> None:
    with pytest.raises(ResourceError, match=r"needs 4\.2 MB of memory, however .* 200 kB may"):
        scan_of(in_links(web), memory="200kB", lanes=8)


CHILD = """
import json, re, sys
from pathlib import Path
import numpy as np
from cocite import Graph
from cocite.engine.scan import Fold, Scan
from cocite.engine.plan import plan_scan
from cocite.graph.links import in_links
from cocite.resources import Resources
from cocite.storage import evict

def now(what):
    return 1024 * int(re.search(what + r":\\s*(\\d+)", Path("/proc/self/status").read_text())[1])

small, graph, memory = Graph.open(sys.argv[1]), Graph.open(sys.argv[2]), int(sys.argv[3])
links = in_links(small)
scan = Scan(links, plan_scan(links, Resources(2, memory, 2), lanes=16, dtype=np.uint32))
x = scan.vector()
scan(x, Fold.MIN, start=x, out=scan.vector())  # loads the kernels
links = in_links(graph)
Path("/proc/self/clear_refs").write_text("5")
before = now("VmRSS")
scan = Scan(links, plan_scan(links, Resources(2, memory), lanes=16, dtype=np.uint32))
x, y = scan.vector(), scan.vector()
lanes = np.arange(16, dtype=np.uint32)
for low in range(0, graph.nodes, 1 << 16):
    ids = np.arange(low, min(low + (1 << 16), graph.nodes), dtype=np.uint32)
    x[low : low + ids.size] = ids[:, None] * np.uint32(2654435761) + lanes
    evict(x)
for _ in range(2):
    scan(x, Fold.MIN, start=x, out=y)
    x, y = y, x
# Not ru_maxrss: that begins with the peak of the process that started this one.
peak = now("VmHWM") - before
print(json.dumps({"peak": peak, "way": scan.plan.way.name, "blocks": scan.plan.blocks,
                  "row": x[12345].tolist()}))
"""


@pytest.mark.process
def test_memory_stays_within_its_budget(tmp_path: Path) -> None:
    """400,000 nodes, 4 million links, 16 lanes: x, y and the links take 70 MB."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("needs /proc")
    budget = 20 << 20
    small = cocite.generate_web(tmp_path / "small", nodes=2000, links=9000, seed=1)
    graph = cocite.generate_web(
        tmp_path / "big", nodes=400_000, links=4_000_000, seed=1, names="integers"
    )
    command = [sys.executable, "-c", CHILD, str(small.path), str(graph.path), str(budget)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    assert found["way"] == "BLOCKS"
    assert found["blocks"] > 1
    assert found["peak"] < budget + (16 << 20), found  # and two threads' own
    reached, front = {12345}, {12345}
    for _ in range(2):
        front = {int(u) for v in front for u in graph.in_neighbors(v)} - reached
        reached |= front
    ids = np.array(sorted(reached), np.uint32)
    hashed = ids[:, None] * np.uint32(2654435761) + np.arange(16, dtype=np.uint32)
    assert found["row"] == hashed.min(axis=0).tolist()
