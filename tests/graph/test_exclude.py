"""Pages that are left out: with their links, from files and from stored graphs alike."""

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


@settings(max_examples=12, phases=[Phase.generate])
@given(
    pairs=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=30),
    kind=KINDS,
    out=st.sets(st.integers(0, 11), max_size=7),
    weighted=st.booleans(),
    undirected=st.booleans(),
    loops=st.booleans(),
)
def test_the_same_comes_of_links_without_them_of_the_option_and_of_a_stored_graph(
    tmp_path: Path,
    pairs: list[tuple[int, int]],
    kind: str,
    out: set[int],
    weighted: bool,
    undirected: bool,
    loops: bool,
) -> None:
    names = [kind.format(page) for page in range(12)]
    rows = [f"{names[a]}\t{names[b]}\t{1 + (3 * a + b) % 5}\n" for a, b in pairs]
    bare = [row for row, (a, b) in zip(rows, pairs, strict=True) if not out & {a, b}]
    stay = {page for pair in pairs for page in pair} - out
    (tmp_path / "nodes").write_text("".join(f"{names[page]}\n" for page in sorted(stay)))
    (tmp_path / "all").write_text("".join(rows))
    (tmp_path / "bare").write_text("".join(bare))
    options: dict[str, Any] = {**PLAIN, "undirected": undirected, "keep_self_loops": loops}
    options |= {"weight_column": 3} if weighted else {}
    options |= {"overwrite": True}
    left_out = [names[page] for page in out]
    whole = cocite.ingest(tmp_path / "all", tmp_path / "whole", **options)
    if not stay:
        for source, more in ((tmp_path / "all", options), (whole.path, {"overwrite": True})):
            with pytest.raises(UsageError, match="would leave an empty graph"):
                cocite.ingest(source, tmp_path / "none", exclude_nodes=left_out, **more)
        assert not list(tmp_path.glob("none*"))
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exclude, "_PIECE", 40)
        patch.setattr(tables, "NAMES_PIECE", 1 << 14)
        found = [
            cocite.ingest(tmp_path / "all", tmp_path / "a", exclude_nodes=left_out, **options),
            cocite.ingest(whole.path, tmp_path / "b", exclude_nodes=left_out, overwrite=True),
        ]
    gone = {page for pair in pairs for page in pair} & out
    if bare and not (kind == "{0}7" and 0 in gone):  # "07" makes texts of all names that are read
        plain = cocite.ingest(
            tmp_path / "bare", tmp_path / "c", nodes=tmp_path / "nodes", **options
        )
        assert content_of(plain) == content_of(found[0])
        assert plain.store.facts.get("weights") == found[1].store.facts.get("weights")
    assert content_of(found[0]) == content_of(found[1])
    assert found[0].digest == found[1].digest
    told = [graph.store.facts["excluded"] for graph in found]
    assert [each["nodes"] for each in told] == [len(gone)] * 2
    assert [each["unknown"] for each in told] == [len(out) - len(gone)] * 2
    assert [each["links"] for each in told] == [whole.edges - found[1].edges] * 2


def test_pages_vanish_and_those_they_alone_were_linked_with_stay(make_graph: MakeGraph) -> None:
    graph = make_graph(LINKS, exclude_nodes=["hub"])
    assert list(graph.names) == ["a", "b", "c"]
    assert [graph.in_neighbors(page).tolist() for page in range(3)] == [[], [0], []]
    facts = graph.store.facts
    assert facts["excluded"] == {"nodes": 1, "links": 3, "unknown": 0}
    dropped = facts["dropped"]["duplicates"] + facts["dropped"]["self_loops"]
    assert facts["rows"] == graph.edges + facts["excluded"]["links"] + dropped == 6


def test_names_of_no_page_are_counted_and_said(
    make_graph: MakeGraph, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = ["2 of 3 names to exclude match no page, such as 'x'", "excluded 1 page with 3 links"]
    with caplog.at_level(logging.INFO, "cocite"):
        graph = make_graph(LINKS, exclude_nodes=["x", "hub", "y", "x"])
    assert [record.getMessage() for record in caplog.records] == said
    assert graph.store.facts["excluded"]["unknown"] == 2
    caplog.clear()
    whole = make_graph(LINKS)
    with caplog.at_level(logging.INFO, "cocite"):
        cocite.ingest(whole.path, tmp_path / "less", exclude_nodes=["x", "hub", "y"])
    assert [record.getMessage() for record in caplog.records] == said


def test_leaving_out_twice_adds_up(make_graph: MakeGraph, tmp_path: Path) -> None:
    first = make_graph(LINKS, exclude_nodes=["c"])
    both = cocite.ingest(first.path, tmp_path / "less", exclude_nodes=["hub"])
    assert list(both.names) == ["a", "b"]
    assert both.store.facts["excluded"] == {"nodes": 2, "links": 3, "unknown": 0}


def test_integers_are_compared_as_they_are_written(make_graph: MakeGraph) -> None:
    graph = make_graph([(1, 2), (2, 3), (3, 1)], exclude_nodes=["02", 3, "x"])
    assert list(graph.names) == ["1", "2"]
    assert graph.store.facts["excluded"] == {"nodes": 1, "links": 2, "unknown": 2}


def test_a_stored_graph_takes_nothing_else(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph(LINKS)
    assert "excluded" not in graph.store.facts
    for more in ({"undirected": True}, {"columns": "2,1"}, {"nodes": "x"}):
        with pytest.raises(UsageError, match="pages can be excluded from it, but options"):
            cocite.ingest(graph.path, tmp_path / "less", exclude_nodes=["hub"], **more)
    with pytest.raises(UsageError, match="exclude is a single string"):
        cocite.ingest(graph.path, tmp_path / "less", exclude_nodes="hub")
    with pytest.raises(OutputExists):
        cocite.ingest(graph.path, graph.path, exclude_nodes=["hub"])
    assert cocite.ingest(graph.path, graph.path, exclude_nodes=["hub"], overwrite=True).nodes == 3
    assert not list(tmp_path.glob("less*"))
