"""Hits as tables and in notebooks; ``related_many``."""

import pickle
import re
from typing import Any
from xml.etree import ElementTree

import nbclient
import nbformat
import numpy as np
import pytest

import cocite
from cocite import Graph, Index
from cocite.errors import UnknownNode, UsageError
from cocite.search.hits import Hit, HitLists, Hits

NODES = 40


@pytest.fixture(scope="module")
def graph() -> Graph:
    rng = np.random.default_rng(5)
    return cocite.ingest(rng.integers(0, NODES, (300, 2)))


@pytest.fixture(scope="module")
def index(graph: Graph) -> Index:
    return cocite.build(graph, measure="psimrank", samples=60)


@pytest.mark.parametrize("measure", ["psimrank", "neighborhood", "xjaccard"])
def test_related_many_equals_related(graph: Graph, measure: str) -> None:
    index = cocite.build(graph, measure=measure)
    queries: list[Any] = [*range(NODES), [3, 4], 7]
    single = [index.related(node, 6, min_confidence=0.5) for node in queries]
    for threads in (None, 1, 3):
        found = index.related_many(iter(queries), 6, min_confidence=0.5, threads=threads)
        assert found == single
        assert found.nodes == queries
        assert pickle.dumps([list(hits) for hits in found]) == pickle.dumps(list(map(list, single)))
    assert index.related_many([], 6) == []


def test_related_many_accepts_refine_and_order(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cocite.search.refine.candidates.MOST_SAMPLES", 256)
    options: dict[str, Any]
    for options in ({"refine": True}, {"order": "score*pagerank"}, {"decay": 0.6}):
        single = [index.related(node, 4, **options) for node in range(3)]
        assert index.related_many(range(3), 4, threads=4, **options) == single


def test_related_many_rejects_unknown_names_first(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Index, "related", lambda *args, **options: pytest.fail("was queried"))
    with pytest.raises(UnknownNode, match="'none'"):
        index.related_many([1, "none"])
    with pytest.raises(UsageError, match="nodes is 'ab'; pass a list"):
        index.related_many("ab")
    with pytest.raises(UsageError, match="threads"):
        index.related_many([1], threads=0)


def test_hits_convert_to_tables(index: Index) -> None:
    hits = index.related(3, 5)
    assert isinstance(hits, Hits)
    assert isinstance(hits[:2], Hits)
    assert isinstance(hits[0], Hit)
    frame = hits.to_pandas()
    assert list(frame.columns) == ["rank", "node", "score", "stderr", "low", "high"]
    assert [tuple(row[1:]) for row in frame.itertuples(index=False)] == list(hits)
    assert hits.to_polars().rows() == list(frame.itertuples(index=False, name=None))
    table = hits.to_arrow()
    assert str(table.schema.field("node").type) == "int64"
    assert table.to_pylist() == frame.to_dict("records")
    assert frame["rank"].tolist() == [1, 2, 3, 4, 5]
    assert Hits().to_arrow().num_rows == 0


def test_hit_lists_convert_to_tables(index: Index) -> None:
    lists = index.related_many([3, 5], 4)
    frame = lists.to_pandas()
    assert list(frame.columns) == ["node", "rank", "related", "score", "stderr", "low", "high"]
    rows = [
        (node, rank, *hit)
        for node, hits in zip([3, 5], lists, strict=True)
        for rank, hit in enumerate(hits, 1)
    ]
    assert list(frame.itertuples(index=False, name=None)) == rows
    assert lists.to_polars().rows() == rows
    assert lists.to_arrow().to_pylist() == frame.to_dict("records")
    joint = index.related_many([[3, 4]], 2)
    assert joint.to_arrow()["node"].to_pylist() == ["[3, 4]"] * 2


def test_hits_tables_stringify_mixed_names() -> None:
    hits = Hits([Hit((1, "a"), 0.5, 0.0, 0.5, 0.5), Hit(3, 0.25, 0.0, 0.25, 0.25)])
    assert hits.to_pandas()["node"].tolist() == [(1, "a"), 3]
    assert hits.to_arrow()["node"].to_pylist() == ["(1, 'a')", "3"]
    assert hits.to_polars()["node"].to_list() == ["(1, 'a')", "3"]


def cells(html: str) -> list[list[ElementTree.Element]]:
    root = ElementTree.fromstring(f"<div>{html}</div>")
    return [list(row) for row in root.iter("tr")][1:]


def test_hits_repr_html_draws_bars_with_intervals() -> None:
    page = "http://a.org/?x=1&y=<b>"
    hits = Hits([Hit(page, 0.5, 0.1, 0.25, 1.0), Hit('<script>"', 0.25, 0.0, 0.25, 0.25)])
    first, second = cells(hits._repr_html_())
    assert [cell.text for cell in first[:1] + first[2:3] + first[4:]] == [
        *("1", "0.5000", "0.1000", "0.2500 to 1.0000")
    ]
    (link,) = first[1]
    assert link.get("href") == link.text == page
    assert second[1].text == '<script>"'
    assert second[5].text is None
    (bar,), (exact,) = first[3], second[3]
    assert bar.get("aria-label") == "0.5000, 0.2500 to 1.0000"
    assert float(bar[0].get("width", "0")) == 2 * float(exact[0].get("width", "0")) == 90.0
    assert re.findall(r"[\d.]+", bar[1].get("d", ""))[::2][:2] == ["45.0", "11"]
    assert len(exact) == 1
    assert Hits()._repr_html_() == "<p>no hits</p>"
    long_list = Hits([hits[0]] * 103)
    assert long_list._repr_html_().endswith("<p>and 3 more hits</p>")
    assert len(cells(long_list._repr_html_())) == 100
    lists = HitLists(["<a>"] * 12, [hits] * 12)
    assert lists._repr_html_().count("<p><b>&lt;a&gt;</b></p>") == 10
    assert lists._repr_html_().endswith("<p>and 2 more lists</p>")


NOTEBOOK = """
import cocite, pandas
links = pandas.DataFrame({"from": list("xxxyyy"), "to": list("abcabd")})
index = cocite.build(cocite.ingest(links), measure="psimrank", samples=50)
index.related("a")
"""


@pytest.mark.process
def test_hits_display_in_notebook() -> None:
    cell: dict[str, Any] = {"cell_type": "code", "metadata": {}, "source": NOTEBOOK, "outputs": []}
    cell |= {"execution_count": None, "id": "one"}
    content = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    notebook: Any = nbformat.from_dict(content)  # type: ignore[no-untyped-call]
    nbclient.NotebookClient(notebook, timeout=300).execute()
    outputs = [
        output for output in notebook.cells[0].outputs if output.output_type == "execute_result"
    ]
    rows = cells(outputs[0].data["text/html"])
    assert rows
    assert {row[1].text for row in rows} <= set("bcd")
    assert "Hit(node='b'" in outputs[0].data["text/plain"]


def test_hits_str_prints_lines() -> None:
    lion = Hit("Lion", 0.5, 0.0, 0.5, 0.5).titled("The lion")
    hits = Hits([lion, Hit("Plains_Zebra", 0.25, 0.01, 0.2, 0.3)])
    assert str(hits) == (
        "1  0.5000                    Lion  The lion\n2  0.2500  0.2000 to 0.3000  Plains_Zebra"
    )
    assert str(hits[:1]) == "1  0.5000  Lion  The lion"
    assert str(Hits()) == "no hits"
    assert str(HitLists(["a", "b"], [hits[:1], Hits()])) == (
        "a\n1  0.5000  Lion  The lion\n\nb\nno hits"
    )
    assert repr(hits).startswith("[Hit(node='Lion'")
