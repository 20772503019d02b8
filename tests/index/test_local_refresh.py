"""Local refreshes of rows: what is rebuilt, what stays, how stale it is, and a full refresh."""

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import UsageError
from cocite.index.layouts.rows.fusion import RowsBuilder
from cocite.index.layouts.snapshots import LocalRefresh
from cocite.storage.staging import Staging
from tests.builds import files
from tests.conftest import MakeGraph
from tests.marks import choose
from tests.storage.enemy import Killed

Edges = list[tuple[Any, ...]]
DAY = "2026-11-21"


class Change(NamedTuple):
    """Links and nodes of a graph before and after, and options for both builds."""

    before: tuple[Edges, list[str]]
    after: tuple[Edges, list[str]]
    build: Mapping[str, Any] = MappingProxyType({})
    graph: Mapping[str, Any] = MappingProxyType({})
    refresh: Mapping[str, Any] = MappingProxyType({})


def links(seed: int, names: list[str], count: int) -> Edges:
    """Draw links between nearby names, most of them within one half of the names."""
    rng, half = np.random.default_rng(seed), len(names) // 2
    first = rng.integers(0, len(names), count)
    second = (first + rng.integers(1, 9, count)) % half + first // half * half
    return sorted({(names[a], names[b]) for a, b in zip(first, second, strict=True) if a != b})


NAMES = [f"p{i:03}" for i in range(150)]
LINKS = links(1, NAMES, 450)
ADDED: Edges = [*LINKS, ("p010", "p100")]
NEW = [f"a{i}" for i in range(4)] + NAMES[5:]
MOVED: Edges = [("a1", "p030"), ("p031", "a2"), *(e for e in LINKS if set(e) <= set(NEW))]


def with_weights(edges: Edges, factor: int = 1) -> Edges:
    return [(*edge, 1 + (i * factor) % 5) for i, edge in enumerate(edges)]


WEIGHTED = with_weights(LINKS)
HEAVIER = [(*WEIGHTED[7][:2], 9), *WEIGHTED[:7], *WEIGHTED[8:]]
HUB: Edges = [*LINKS, *((name, "p149") for name in NAMES[20:60])]
CHANGES = {
    "nothing": Change((LINKS, NAMES), (LINKS, NAMES), refresh={"force": True}),
    "a link more": Change((LINKS, NAMES), (ADDED, NAMES)),
    "a link less": Change((LINKS, NAMES), (LINKS[1:], NAMES)),
    "a link of a hub": Change((HUB, NAMES), (HUB[:-1], NAMES)),
    "half of it": Change((LINKS, NAMES), (LINKS[:200] + links(2, NAMES, 450)[200:], NAMES)),
    "other nodes": Change((LINKS, NAMES), (MOVED, NEW)),
    "ppr-pmi": Change((LINKS, NAMES), (MOVED, NEW), {"measure": "ppr-pmi"}),
    "small": Change((LINKS, NAMES), (MOVED, NEW), {"size": "small"}),
    "weights": Change((WEIGHTED, NAMES), (HEAVIER, NAMES), graph={"weight_column": "3"}),
    "some pages": Change((LINKS, NAMES), (MOVED, NEW), {"only_prefix": ["p0", "a"]}),
}


def rows(index: cocite.Index, graph: Graph) -> list[dict[str, dict[str, int]]]:
    """Return the rows of each family, by name."""
    part, names = index.stored.parts[0], list(graph.names)
    offsets, ids, codes = (
        part.array(f"rows.{name}").tolist() for name in ("offsets", "ids", "codes")
    )
    nodes, families = list(index.nodes), []
    for number in range(part.array("weights").size):
        start = number * len(nodes)
        entries = (slice(offsets[start + i], offsets[start + i + 1]) for i in range(len(nodes)))
        values = ([(names[v], c) for v, c in zip(ids[e], codes[e], strict=True)] for e in entries)
        families.append(dict(zip(nodes, map(dict, values), strict=True)))
    return families


def rebuilt_names(change: Change) -> set[str]:
    """Return the nodes whose links changed, and their neighbors."""
    (before, _), (after, nodes) = change.before, change.after
    changed = {name for edge in set(before) ^ set(after) for name in edge[:2]}
    changed |= set(nodes) - set(change.before[1])
    degrees = Counter(name for edge in after for name in edge[:2])
    near = {name for name in changed if degrees[name] <= 32}
    return changed | {name for edge in after if near & set(edge[:2]) for name in edge[:2]}


def build_before(make_graph: MakeGraph, change: Change, tmp_path: Path) -> tuple[Graph, Graph]:
    """Return the graphs of a change, and build the index ``x`` of the first."""
    before, after = (make_graph(*each, **change.graph) for each in change[:2])
    cocite.build(before, tmp_path / "x", **{"measure": "fusion", **change.build})
    return before, after


@pytest.mark.long
@pytest.mark.parametrize("case", choose(CHANGES, "other nodes"))
def test_local_refresh_rebuilds_changed_nodes_and_neighbors(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Rebuilt rows equal those of a build of the new graph, with codes on the scales of the old
    one; other rows stay as they were, by name. A full refresh equals a build to the byte.
    """
    change = CHANGES[case]
    before, after = build_before(make_graph, change, tmp_path)
    old = cocite.open(tmp_path / "x")
    scales = old.stored.parts[0].array("scales").tolist()
    with monkeypatch.context() as patch:
        patch.setattr(RowsBuilder, "_scales", scales)
        whole = cocite.build(after, tmp_path / "scaled", **{"measure": "fusion", **change.build})
    local = cocite.refresh(tmp_path / "x", after, local=True, **change.refresh)
    rebuilt = rebuilt_names(change)
    for local_rows, rebuilt_rows, old_rows in zip(
        rows(local, after), rows(whole, after), rows(old, before), strict=True
    ):
        for name, row in local_rows.items():
            stays = name in old_rows and name not in rebuilt
            removed = set(before.names) - set(after.names)
            remaining = {v: code for v, code in old_rows.get(name, {}).items() if v not in removed}
            assert row == (remaining if stays else rebuilt_rows[name])
    assert cocite.verify(tmp_path / "x").faults == []
    facts = local.stored.local
    assert facts is not None
    assert facts.nodes == sum(name in rebuilt or name not in set(old.nodes) for name in local.nodes)
    check_columns(local)
    check_staleness(facts, local, whole)
    cocite.refresh(tmp_path / "x", after)
    fresh = cocite.build(after, tmp_path / "n", **{"measure": "fusion", **change.build})
    assert files(tmp_path / "x") == files(tmp_path / "n")
    assert fresh.stored.local is None


def check_columns(index: cocite.Index) -> None:
    """Check that columns are the transpose of rows, and norms their sums of squares."""
    (part,) = index.stored.parts
    families, nodes = part.array("weights").size, part.nodes
    triples = []
    for kind in ("rows", "columns"):
        offsets = part.array(f"{kind}.offsets").astype(np.int64)
        line = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
        per_family = (offsets.size - 1) // families
        own, other = line % per_family, part.array(f"{kind}.ids")
        ends = (own, other) if kind == "rows" else (other, own)
        triples.append(
            sorted(zip(line // per_family, *ends, part.array(f"{kind}.codes"), strict=True))
        )
        if kind == "rows":
            squares = part.array("rows.codes").astype(np.float64) ** 2
            assert (np.bincount(line, squares, families * nodes) == part.array("norms")).all()
    assert triples[0] == triples[1]


def check_staleness(facts: LocalRefresh, local: cocite.Index, whole: cocite.Index) -> None:
    """Check the reported staleness against a full build: it exceeds neither the share of lists
    that differ nor the largest difference, and covers the scores of the current lists.
    """
    names = list(local.nodes)
    fresh, stale = (np.zeros((len(names), len(names))) for _ in range(2))
    for index, matrix in ((whole, fresh), (local, stale)):
        for row, name in enumerate(names):
            for hit in index.related(name, len(names)):
                matrix[row, names.index(hit.node)] = hit.score
    differing, largest = 0, 0.0
    assert facts.checked == len(names) - facts.nodes
    for node, name in enumerate(names):
        listed = [names.index(hit.node) for hit in local.related(name, 10)]
        unlisted = [v for v in range(len(names)) if v not in (node, *listed)]
        least = fresh[node, listed].min(initial=1) if len(listed) == 10 else 0.0
        differing += (
            fresh[node, unlisted].max(initial=0.0) > least or (fresh[node, listed] == 0).any()
        )
        largest = max(largest, np.abs(fresh - stale)[node, listed].max(initial=0.0))
    assert facts.differ * facts.checked <= differing + 1e-9
    assert facts.largest_difference <= np.abs(fresh - stale).max() + 1e-9
    if facts.nodes == 0:
        assert (facts.differ, facts.largest_difference) == (0, 0)
    elif facts.checked == len(names):
        assert facts.largest_difference >= largest


def test_local_refresh_threads_and_memory_keep_bytes(make_graph: MakeGraph, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    names = [str(i) for i in range(1200)]
    edges = sorted({(str(a), str(b)) for a, b in rng.zipf(1.5, (3600, 2)) % 1200})
    before, after = make_graph(edges, names), make_graph([*edges[3:], ("5", "77")], names)
    resources: list[dict[str, Any]] = [{"threads": 2}, {"threads": 1}, {"memory": "32MB"}]
    contents = []
    cocite.build(before, tmp_path / "x", measure="fusion")
    for number, options in enumerate(resources):
        shutil.copytree(tmp_path / "x", tmp_path / f"x{number}")
        cocite.refresh(tmp_path / f"x{number}", after, local=True, date=DAY, **options)
        contents.append(files(tmp_path / f"x{number}"))
    assert contents[0] == contents[1] == contents[2]


def test_local_refresh_counts_refreshes_and_dates(make_graph: MakeGraph, tmp_path: Path) -> None:
    """Kept rows still come from the full build; a refresh with the same graph does nothing."""
    before, after = build_before(make_graph, CHANGES["a link more"], tmp_path)
    newest = make_graph(MOVED, NEW)
    first = cocite.refresh(tmp_path / "x", after, local=True, date="2026-11-20").stored.local
    second = cocite.refresh(tmp_path / "x", newest, local=True, date=DAY).stored.local
    assert first is not None
    assert second is not None
    assert (first.refreshes, first.date) == (1, "2026-11-20")
    assert (second.refreshes, second.date) == (2, DAY)
    assert first.graph == second.graph == before.path.name
    assert first.since == second.since
    before_files = files(tmp_path / "x")
    cocite.refresh(tmp_path / "x", newest, local=True)
    assert files(tmp_path / "x") == before_files
    described = cocite.info(tmp_path / "x").to_json()["local"]
    assert described == second.to_json()


def test_local_refresh_resumes_after_kill_before_publish(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old index stays, and no finished work is repeated."""
    _, after = build_before(make_graph, CHANGES["other nodes"], tmp_path)
    cocite.build(make_graph(LINKS, NAMES), tmp_path / "y", measure="fusion")
    cocite.refresh(tmp_path / "y", after, local=True, date=DAY)
    before_files = files(tmp_path / "x")

    def die(*arguments: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Staging, "publish", die)
        with pytest.raises(Killed):
            cocite.refresh(tmp_path / "x", after, local=True, date=DAY)
    assert files(tmp_path / "x") == before_files
    with pytest.raises(UsageError, match="local: true, here false"):
        cocite.refresh(tmp_path / "x", after, date=DAY)
    monkeypatch.setattr(RowsBuilder, "write", die)
    cocite.refresh(tmp_path / "x", after, local=True, date=DAY)
    resumed, uninterrupted = files(tmp_path / "x"), files(tmp_path / "y")
    differing = {
        name
        for name in resumed.keys() | uninterrupted.keys()
        if resumed.get(name) != uninterrupted.get(name)
    }
    assert differing <= {"manifest.json"}
    facts = [cocite.open(tmp_path / name).stored.local for name in "xy"]
    assert facts[0] is not None
    assert facts[1] is not None
    assert replace(facts[0], graph=facts[1].graph) == facts[1]


def test_local_refresh_refuses_other_measure_or_missing_graph(
    make_graph: MakeGraph, tmp_path: Path
) -> None:
    before, after = build_before(make_graph, CHANGES["a link more"], tmp_path)
    cocite.build(before, tmp_path / "c", measure="cocitation")
    with pytest.raises(UsageError, match="only fusion and ppr-pmi support local refreshes"):
        cocite.refresh(tmp_path / "c", after, local=True)
    before.path.rename(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="compares the links of both graphs: restore"):
        cocite.refresh(tmp_path / "x", after, local=True)
    make_graph(MOVED, NEW).path.rename(before.path)
    with pytest.raises(UsageError, match=r"is no longer the graph of "):
        cocite.refresh(tmp_path / "x", after, local=True)
    assert cocite.refresh(tmp_path / "x", after).stored.local is None


@pytest.mark.long
def test_local_refresh_with_same_volume_equals_build(make_graph: MakeGraph, tmp_path: Path) -> None:
    """A link moves, while the volume and the lowest degree stay: the scales are equal, too."""
    pair, names = ("q1", "q2"), [*NAMES, "q1", "q2"]  # they have the lowest degree
    change = Change(([*LINKS, pair], names), ([*LINKS[1:], ("p010", "p100"), pair], names))
    _, after = build_before(make_graph, change, tmp_path)
    local = cocite.refresh(tmp_path / "x", after, local=True)
    whole = cocite.build(after, tmp_path / "n", measure="fusion")
    local_scales, whole_scales = (
        index.stored.parts[0].array("scales").tolist() for index in (local, whole)
    )
    assert local_scales == whole_scales
    for local_rows, whole_rows in zip(rows(local, after), rows(whole, after), strict=True):
        assert all(local_rows[name] == whole_rows[name] for name in rebuilt_names(change))
    assert local.stored.digest != whole.stored.digest
