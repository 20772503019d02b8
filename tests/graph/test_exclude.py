"""Excluding pages with their links, from files and from stored graphs."""

import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import cocite
from cocite.errors import OutputExists, UsageError
from cocite.graph import exclude
from cocite.io import tables
from tests.conftest import MakeGraph
from tests.io.plain import content_of

PLAIN = {"delimiter": "tab", "header": "no"}
KINDS = st.sampled_from(["{}", "{0}7", "p{}", "http://h{0}.org/x", "http://a.org/{}"])
LINKS = [("hub", "a"), ("hub", "b"), ("a", "b"), ("hub", "a"), ("c", "hub"), ("hub", "hub")]


@settings(max_examples=10, phases=[Phase.generate])
@given(
    pairs=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=30),
    kind=KINDS,
    excluded=st.sets(st.integers(0, 11), max_size=7),
    weighted=st.booleans(),
    undirected=st.booleans(),
    loops=st.booleans(),
)
def test_exclude_nodes_equals_filtered_links(
    tmp_path: Path,
    pairs: list[tuple[int, int]],
    kind: str,
    excluded: set[int],
    weighted: bool,
    undirected: bool,
    loops: bool,
) -> None:
    names = [kind.format(page) for page in range(12)]
    rows = [f"{names[a]}\t{names[b]}\t{1 + (3 * a + b) % 5}\n" for a, b in pairs]
    filtered = [row for row, (a, b) in zip(rows, pairs, strict=True) if not excluded & {a, b}]
    remaining = {page for pair in pairs for page in pair} - excluded
    (tmp_path / "nodes").write_text("".join(f"{names[page]}\n" for page in sorted(remaining)))
    (tmp_path / "all").write_text("".join(rows))
    (tmp_path / "bare").write_text("".join(filtered))
    options: dict[str, Any] = {**PLAIN, "undirected": undirected, "keep_self_loops": loops}
    options |= {"weight_column": 3} if weighted else {}
    options |= {"overwrite": True}
    excluded_names = [names[page] for page in excluded]
    full = cocite.ingest(tmp_path / "all", tmp_path / "whole", **options)
    if not remaining:
        for source, extra in ((tmp_path / "all", options), (full.path, {"overwrite": True})):
            with pytest.raises(UsageError, match="would leave an empty graph"):
                cocite.ingest(source, tmp_path / "none", exclude_nodes=excluded_names, **extra)
        assert not list(tmp_path.glob("none*"))
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exclude, "_PIECE", 40)
        patch.setattr(tables, "NAMES_PIECE", 1 << 14)
        found = [
            cocite.ingest(
                tmp_path / "all", tmp_path / "a", exclude_nodes=excluded_names, **options
            ),
            cocite.ingest(full.path, tmp_path / "b", exclude_nodes=excluded_names, overwrite=True),
        ]
    removed = {page for pair in pairs for page in pair} & excluded
    if filtered and not (kind == "{0}7" and 0 in removed):  # "07" makes all names text
        plain = cocite.ingest(
            tmp_path / "bare", tmp_path / "c", nodes=tmp_path / "nodes", **options
        )
        assert content_of(plain) == content_of(found[0])
        assert plain.store.facts.get("weights") == found[1].store.facts.get("weights")
    assert content_of(found[0]) == content_of(found[1])
    assert found[0].digest == found[1].digest
    facts = [graph.store.facts["excluded"] for graph in found]
    assert [counts["nodes"] for counts in facts] == [len(removed)] * 2
    assert [counts["unknown"] for counts in facts] == [len(excluded) - len(removed)] * 2
    assert [counts["links"] for counts in facts] == [full.edges - found[1].edges] * 2


def test_exclude_nodes_keeps_isolated_neighbors(make_graph: MakeGraph) -> None:
    graph = make_graph(LINKS, exclude_nodes=["hub"])
    assert list(graph.names) == ["a", "b", "c"]
    assert [graph.in_neighbors(page).tolist() for page in range(3)] == [[], [0], []]
    facts = graph.store.facts
    assert facts["excluded"] == {"nodes": 1, "links": 3, "unknown": 0}
    dropped = facts["dropped"]["duplicates"] + facts["dropped"]["self_loops"]
    assert facts["rows"] == graph.edges + facts["excluded"]["links"] + dropped == 6


def test_exclude_nodes_counts_unknown_names(
    make_graph: MakeGraph, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    messages = [
        "2 of 3 names to exclude match no page, for example 'x'",
        "excluded 1 page with 3 links",
    ]
    with caplog.at_level(logging.INFO, "cocite"):
        graph = make_graph(LINKS, exclude_nodes=["x", "hub", "y", "x"])
    assert [record.getMessage() for record in caplog.records] == messages
    assert graph.store.facts["excluded"]["unknown"] == 2
    caplog.clear()
    full = make_graph(LINKS)
    with caplog.at_level(logging.INFO, "cocite"):
        cocite.ingest(full.path, tmp_path / "less", exclude_nodes=["x", "hub", "y"])
    assert [record.getMessage() for record in caplog.records] == messages


def test_exclude_nodes_twice_adds_counts(make_graph: MakeGraph, tmp_path: Path) -> None:
    first = make_graph(LINKS, exclude_nodes=["c"])
    both = cocite.ingest(first.path, tmp_path / "less", exclude_nodes=["hub"])
    assert list(both.names) == ["a", "b"]
    assert both.store.facts["excluded"] == {"nodes": 2, "links": 3, "unknown": 0}


def test_exclude_nodes_compares_integers_as_written(make_graph: MakeGraph) -> None:
    graph = make_graph([(1, 2), (2, 3), (3, 1)], exclude_nodes=["02", 3, "x"])
    assert list(graph.names) == ["1", "2"]
    assert graph.store.facts["excluded"] == {"nodes": 1, "links": 2, "unknown": 2}


def test_exclude_from_stored_graph_refuses_other_options(
    make_graph: MakeGraph, tmp_path: Path
) -> None:
    graph = make_graph(LINKS)
    assert "excluded" not in graph.store.facts
    for options in ({"undirected": True}, {"columns": "2,1"}, {"nodes": "x"}):
        with pytest.raises(UsageError, match="pages can be excluded from it, but options"):
            cocite.ingest(graph.path, tmp_path / "less", exclude_nodes=["hub"], **options)
    with pytest.raises(UsageError, match="exclude is a single string"):
        cocite.ingest(graph.path, tmp_path / "less", exclude_nodes="hub")
    with pytest.raises(OutputExists):
        cocite.ingest(graph.path, graph.path, exclude_nodes=["hub"])
    assert cocite.ingest(graph.path, graph.path, exclude_nodes=["hub"], overwrite=True).nodes == 3
    assert not list(tmp_path.glob("less*"))
