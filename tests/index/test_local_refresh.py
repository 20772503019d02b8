"""Local refreshes of rows: what is made anew, what stays, how stale that is, and the way back."""

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
from tests.storage.enemy import Killed

Edges = list[tuple[Any, ...]]
DAY = "2026-11-21"


class Change(NamedTuple):
    """Links and nodes of a graph, before and after, and options of both builds."""

    before: tuple[Edges, list[str]]
    after: tuple[Edges, list[str]]
    build: Mapping[str, Any] = MappingProxyType({})
    graph: Mapping[str, Any] = MappingProxyType({})
    refresh: Mapping[str, Any] = MappingProxyType({})


def links(seed: int, names: list[str], count: int) -> Edges:
    """Most of them between names that stand near to each other, and within either half."""
    rng, half = np.random.default_rng(seed), len(names) // 2
    first = rng.integers(0, len(names), count)
    second = (first + rng.integers(1, 9, count)) % half + first // half * half
    return sorted({(names[a], names[b]) for a, b in zip(first, second, strict=True) if a != b})


NAMES = [f"p{i:03}" for i in range(150)]
LINKS = links(1, NAMES, 450)
ADDED: Edges = [*LINKS, ("p010", "p100")]
NEW = [f"a{i}" for i in range(4)] + NAMES[5:]
MOVED: Edges = [("a1", "p030"), ("p031", "a2"), *(e for e in LINKS if set(e) <= set(NEW))]


def heavy(edges: Edges, factor: int = 1) -> Edges:
    return [(*edge, 1 + (i * factor) % 5) for i, edge in enumerate(edges)]


WEIGHTED = heavy(LINKS)
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
    "threads": Change((LINKS, NAMES), (MOVED, NEW), refresh={"threads": 2}),
}


def rows(index: cocite.Index, graph: Graph) -> list[dict[str, dict[str, int]]]:
    """The rows of each family, by names."""
    part, names = index.stored.parts[0], list(graph.names)
    offsets, ids, codes = (
        part.array(f"rows.{name}").tolist() for name in ("offsets", "ids", "codes")
    )
    nodes, found = list(index.nodes), []
    for family in range(part.array("weights").size):
        at = family * len(nodes)
        entries = (slice(offsets[at + i], offsets[at + i + 1]) for i in range(len(nodes)))
        values = ([(names[v], c) for v, c in zip(ids[e], codes[e], strict=True)] for e in entries)
        found.append(dict(zip(nodes, map(dict, values), strict=True)))
    return found


def made_anew(change: Change) -> set[str]:
    """The nodes whose links changed, and their neighbors."""
    (before, _), (after, nodes) = change.before, change.after
    changed = {name for edge in set(before) ^ set(after) for name in edge[:2]}
    changed |= set(nodes) - set(change.before[1])
    degrees = Counter(name for edge in after for name in edge[:2])
    near = {name for name in changed if degrees[name] <= 32}
    return changed | {name for edge in after if near & set(edge[:2]) for name in edge[:2]}


def built(make_graph: MakeGraph, change: Change, tmp_path: Path) -> tuple[Graph, Graph]:
    """The graphs of a change; the index of the first is ``x``."""
    before, after = (make_graph(*each, **change.graph) for each in change[:2])
    cocite.build(before, tmp_path / "x", **{"measure": "fusion", **change.build})
    return before, after


@pytest.mark.parametrize("case", CHANGES)
def test_local_refresh_makes_changed_nodes_and_their_neighbors_anew(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """Their rows are those of a build of the new graph, with codes on the scales of the old one;
    all others are as they were, by name; and a refresh of all is a build to the byte.
    """
    change = CHANGES[case]
    before, after = built(make_graph, change, tmp_path)
    old = cocite.open(tmp_path / "x")
    scales = old.stored.parts[0].array("scales").tolist()
    with monkeypatch.context() as patch:
        patch.setattr(RowsBuilder, "_scales", scales)
        whole = cocite.build(after, tmp_path / "scaled", **{"measure": "fusion", **change.build})
    local = cocite.refresh(tmp_path / "x", after, local=True, **change.refresh)
    anew = made_anew(change)
    for ours, made, kept in zip(
        rows(local, after), rows(whole, after), rows(old, before), strict=True
    ):
        for name, row in ours.items():
            stays = name in kept and name not in anew
            gone = set(before.names) - set(after.names)
            left = {v: code for v, code in kept.get(name, {}).items() if v not in gone}
            assert row == (left if stays else made[name])
    assert cocite.verify(tmp_path / "x").faults == []
    found = local.stored.local
    assert found is not None
    assert found.nodes == sum(name in anew or name not in set(old.nodes) for name in local.nodes)
    check_columns(local)
    check_staleness(found, local, whole)
    cocite.refresh(tmp_path / "x", after)
    fresh = cocite.build(after, tmp_path / "n", **{"measure": "fusion", **change.build})
    assert files(tmp_path / "x") == files(tmp_path / "n")
    assert fresh.stored.local is None


def check_columns(index: cocite.Index) -> None:
    """Columns are the transpose of rows, and norms their sums."""
    (part,) = index.stored.parts
    families, nodes = part.array("weights").size, part.nodes
    triples = []
    for kind in ("rows", "columns"):
        offsets = part.array(f"{kind}.offsets").astype(np.int64)
        line = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
        each = (offsets.size - 1) // families
        own, other = line % each, part.array(f"{kind}.ids")
        ends = (own, other) if kind == "rows" else (other, own)
        triples.append(sorted(zip(line // each, *ends, part.array(f"{kind}.codes"), strict=True)))
        if kind == "rows":
            squares = part.array("rows.codes").astype(np.float64) ** 2
            assert (np.bincount(line, squares, families * nodes) == part.array("norms")).all()
    assert triples[0] == triples[1]


def check_staleness(found: LocalRefresh, local: cocite.Index, whole: cocite.Index) -> None:
    """Beside the scores of all pairs by new rows alone: no more lists differ than do, no score is
    off by more than any is, and scores of lists as they are are off by no more than is said.
    """
    names = list(local.nodes)
    now, before = (np.zeros((len(names), len(names))) for _ in range(2))
    for index, found_scores in ((whole, now), (local, before)):
        for row, name in enumerate(names):
            for hit in index.related(name, len(names)):
                found_scores[row, names.index(hit.node)] = hit.score
    differ, off = 0, 0.0
    assert found.checked == len(names) - found.nodes
    for node, name in enumerate(names):
        listed = [names.index(hit.node) for hit in local.related(name, 10)]
        others = [v for v in range(len(names)) if v not in (node, *listed)]
        least = now[node, listed].min(initial=1) if len(listed) == 10 else 0.0
        differ += now[node, others].max(initial=0.0) > least or (now[node, listed] == 0).any()
        off = max(off, np.abs(now - before)[node, listed].max(initial=0.0))
    assert found.differ * found.checked <= differ + 1e-9
    assert found.largest_difference <= np.abs(now - before).max() + 1e-9
    if found.nodes == 0:
        assert (found.differ, found.largest_difference) == (0, 0)
    elif found.checked == len(names):
        assert found.largest_difference >= off


def test_local_refresh_of_all_volume_equals_a_build(make_graph: MakeGraph, tmp_path: Path) -> None:
    """To the bit, scales and all: a link goes elsewhere; volume and least degree stay."""
    pair, names = ("q1", "q2"), [*NAMES, "q1", "q2"]  # which have the least degree
    change = Change(([*LINKS, pair], names), ([*LINKS[1:], ("p010", "p100"), pair], names))
    _, after = built(make_graph, change, tmp_path)
    local = cocite.refresh(tmp_path / "x", after, local=True)
    whole = cocite.build(after, tmp_path / "n", measure="fusion")
    ours, theirs = (index.stored.parts[0].array("scales").tolist() for index in (local, whole))
    assert ours == theirs
    for mine, made in zip(rows(local, after), rows(whole, after), strict=True):
        assert all(mine[name] == made[name] for name in made_anew(change))
    assert local.stored.digest != whole.stored.digest


@pytest.mark.parametrize("measure", ["fusion", "ppr-pmi"])
def test_local_refresh_threads_bytes(make_graph: MakeGraph, tmp_path: Path, measure: str) -> None:
    rng = np.random.default_rng(5)
    names = [str(i) for i in range(3000)]
    edges = sorted({(str(a), str(b)) for a, b in rng.zipf(1.5, (9000, 2)) % 3000})
    before, after = make_graph(edges, names), make_graph([*edges[3:], ("5", "77")], names)
    ways: list[dict[str, Any]] = [{"threads": 2}, {"threads": 1}, {"memory": "32MB"}]
    found = []
    for number, how in enumerate(ways):
        cocite.build(before, tmp_path / f"x{number}", measure=measure)
        cocite.refresh(tmp_path / f"x{number}", after, local=True, date=DAY, **how)
        found.append(files(tmp_path / f"x{number}"))
    assert found[0] == found[1] == found[2]


def test_local_refreshes_add_up_and_say_since_when(make_graph: MakeGraph, tmp_path: Path) -> None:
    """The rows that stay are of the full build all the while; the same graph again is nothing."""
    before, after = built(make_graph, CHANGES["a link more"], tmp_path)
    again = make_graph(MOVED, NEW)
    first = cocite.refresh(tmp_path / "x", after, local=True, date="2026-11-20").stored.local
    second = cocite.refresh(tmp_path / "x", again, local=True, date=DAY).stored.local
    assert first is not None
    assert second is not None
    assert (first.refreshes, first.date) == (1, "2026-11-20")
    assert (second.refreshes, second.date) == (2, DAY)
    assert first.graph == second.graph == before.path.name
    assert first.since == second.since
    known = files(tmp_path / "x")
    cocite.refresh(tmp_path / "x", again, local=True)
    assert files(tmp_path / "x") == known
    found = cocite.info(tmp_path / "x").to_json()["local"]
    assert found == second.to_json()


def test_local_refresh_killed_before_it_is_published_goes_on(
    make_graph: MakeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old index answers; what was made, and found of the others, is not made once more."""
    _, after = built(make_graph, CHANGES["other nodes"], tmp_path)
    cocite.build(make_graph(LINKS, NAMES), tmp_path / "y", measure="fusion")
    cocite.refresh(tmp_path / "y", after, local=True, date=DAY)
    known = files(tmp_path / "x")

    def dying(*arguments: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Staging, "publish", dying)
        with pytest.raises(Killed):
            cocite.refresh(tmp_path / "x", after, local=True, date=DAY)
    assert files(tmp_path / "x") == known
    with pytest.raises(UsageError, match="local: true, here false"):
        cocite.refresh(tmp_path / "x", after, date=DAY)
    monkeypatch.setattr(RowsBuilder, "write", dying)
    cocite.refresh(tmp_path / "x", after, local=True, date=DAY)
    ours, theirs = files(tmp_path / "x"), files(tmp_path / "y")
    differing = {name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}
    assert differing <= {"manifest.json"}
    ends = [cocite.open(tmp_path / name).stored.local for name in "xy"]
    assert ends[0] is not None
    assert ends[1] is not None
    assert replace(ends[0], graph=ends[1].graph) == ends[1]


def test_local_refresh_without_its_needs_is_refused(make_graph: MakeGraph, tmp_path: Path) -> None:
    before, after = built(make_graph, CHANGES["a link more"], tmp_path)
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
