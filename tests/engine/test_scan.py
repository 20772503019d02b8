"""Scans against their definition, and every way of scanning against every other, to the bit."""

from __future__ import annotations

import json
import subprocess
import sys
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
from cocite.engine.plan import Way, plan_scan
from cocite.engine.scan import Fold, Scan
from cocite.errors import ResourceError, UsageError
from cocite.graph.blocks import Links
from cocite.graph.links import in_links
from cocite.resources import Resources, format_size, own_memory
from tests.conftest import MakeGraph
from tests.oracles import scan as exact
from tests.oracles.graphs import Edges, graphs, in_neighbors

DTYPES = {"uint32": range(1, 17), "float32": range(1, 17), "float64": range(1, 9)}
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
    progress: Any = lambda done, total: None,
    **means: Any,
) -> Scan:
    plan = plan_scan(links, Resources.checked(**means), lanes=lanes, dtype=dtype)
    return Scan(links, plan, progress=progress)


def neighbors_of(graph: Graph) -> list[list[int]]:
    return [graph.in_neighbors(v).tolist() for v in range(graph.nodes)]


@settings(max_examples=150)
@given(
    graphs(),
    st.sampled_from(sorted(DTYPES)),
    st.sampled_from([1, 3, 4, 16]),
    st.sampled_from(list(Fold)),
    st.booleans(),
    st.sampled_from([None, 1, 2, 7, 64]),
    st.integers(1, 2),
    st.integers(0, 99),
)
def test_a_scan_is_what_its_definition_says(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    dtype: str,
    lanes: int,
    fold: Fold,
    started: bool,
    blocks: int | None,
    threads: int,
    seed: int,
) -> None:
    n, edges = graph
    lanes = min(lanes, MOST[dtype])
    scan = scan_of(
        in_links(make_graph(edges, range(n))),
        lanes=lanes,
        dtype=dtype,
        blocks=blocks,
        threads=threads,
    )
    x = values(scan.shape, dtype, seed)
    start = values(scan.shape, dtype, seed + 1) if started else None
    truth = exact.scan(in_neighbors(n, edges), x, fold.value, start)
    assert same(scan(x, fold, start=start), truth)
    assert scan.plan.way is (Way.MEMORY if blocks is None else Way.BLOCKS)


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
    monkeypatch.setattr(scan_plan, "_LEAST_SHARE", 2000)
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


def test_strips_and_windows_are_many_in_the_test_above(
    web: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards it: or the merging of strips would not be tested."""
    monkeypatch.setattr(scan_plan, "_LEAST_SHARE", 2000)
    plan = scan_of(in_links(web), lanes=16, dtype=np.uint32, threads=2, memory=25_000).plan
    assert (plan.way, plan.threads) == (Way.BLOCKS, 2)
    assert plan.blocks > 30
    assert plan.strip * plan.blocks < web.edges / 2
    assert plan.window < web.nodes / 10


def test_more_memory_is_fewer_blocks_and_it_is_said(
    web: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_plan, "_LEAST_SHARE", 2000)
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
    taken = {memory: format_size(own_memory() + plan.memory) for memory, plan in plans.items()}
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
    scan = scan_of(in_links(web), lanes=4, dtype=np.uint32, blocks=5, threads=1)
    heads = sum(
        np.unique(web.in_sources[int(a) : int(b)]).size
        for a, b in zip(web.in_offsets[:-1:600], web.in_offsets[600::600], strict=True)
    )
    assert scan.plan.blocks == 5
    assert scan.plan.reads == 5 * 16 * web.nodes + 4 * (web.edges + heads)


@pytest.mark.parametrize("blocks", [None, 3])
def test_out_may_be_start_and_is_returned(web: Graph, blocks: int | None) -> None:
    scan = scan_of(in_links(web), lanes=4, dtype=np.uint32, blocks=blocks)
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
    assert scan_of(in_links(web), lanes=16, dtype=np.float32).vector().ctypes.data % 64 == 0
    files = sorted(web.path.iterdir())
    scan = scan_of(in_links(web), lanes=16, dtype=np.float32, blocks=2)
    vector = scan.vector()
    assert vector.flags.writeable
    assert not vector.any()
    assert sorted(web.path.iterdir()) == files


@pytest.mark.parametrize("blocks", [None, 4])
def test_progress_counts_to_the_end_and_may_stop_it(web: Graph, blocks: int | None) -> None:
    arranged: list[tuple[int, int]] = []
    scan = scan_of(
        in_links(web),
        dtype=np.float64,
        blocks=blocks,
        threads=2,
        progress=lambda *p: arranged.append(p),
    )
    x, seen = np.ones(scan.shape), []
    scan(x, Fold.SUM, progress=lambda *p: seen.append(p))
    total = scan.plan.blocks
    assert seen == [(i, total) for i in range(1, total + 1)]
    assert arranged[-1:] == ([(web.edges, web.edges)] if blocks else [])

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scan(x, Fold.SUM, progress=stop)
    assert same(scan(x, Fold.SUM), np.diff(web.in_offsets).astype(np.float64))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lanes": 0}, "lanes is 0; it is a whole number from 1 to 8 for float64"),
        ({"lanes": 17, "dtype": "float32"}, "from 1 to 16 for float32"),
        ({"lanes": True}, "lanes is True"),
        ({"dtype": "int64"}, "dtype is int64; it is uint32, float32 or float64"),
        ({"blocks": 0}, "blocks is 0"),
        ({"threads": 0}, "threads is 0"),
    ],
)
def test_wrong_use_is_refused(web: Graph, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        scan_of(in_links(web), **options)


def test_wrong_arrays_are_refused(web: Graph) -> None:
    scan = scan_of(in_links(web), lanes=2, dtype=np.float32)
    x = scan.vector()
    for wrong in (
        np.zeros((NODES, 3), np.float32),
        x.astype(np.float64),
        np.zeros(NODES, np.float32),
    ):
        with pytest.raises(UsageError, match=r"x is float.*this scan takes contiguous float32\["):
            scan(wrong, Fold.SUM)
    with pytest.raises(UsageError, match="start is float32"):
        scan(x, Fold.SUM, start=np.asfortranarray(np.zeros((NODES, 2), np.float32)))
    with pytest.raises(UsageError, match="out is x"):
        scan(x, Fold.SUM, out=x)
    fixed = scan.vector()
    fixed.flags.writeable = False
    with pytest.raises(UsageError, match="read-only"):
        scan(x, Fold.SUM, out=fixed)


def test_too_little_memory_is_an_error_that_says_how_much(web: Graph) -> None:
    with pytest.raises(ResourceError, match=r"needs 4\.19 MB of memory, however .* 200 kB may"):
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
