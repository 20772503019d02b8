"""Hubs: pages that are linked with more than a fifth of all; small and dense graphs have none."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite.cli.main import main
from cocite.graph import graph
from cocite.graph.graph import LEAST, Hub, hubs_in_words, hubs_of
from cocite.graph.name_files import IntegerNames
from tests.conftest import MakeGraph

Edges = list[tuple[str, str]]


def site(pages: int = 300) -> Edges:
    """Pages in a ring, all named by an index page; half of them link to a page at their foot."""
    ring = [(f"p{i}", f"p{(i + 1) % pages}") for i in range(pages)]
    toc = [("index", f"p{i}") for i in range(pages - 20)]
    return ring + toc + [(f"p{i}", "foot") for i in range(pages // 2)]


@settings(max_examples=60)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=90),
    piece=st.sampled_from([7, 1 << 20]),
)
def test_hubs_are_those_of_the_rule(sizes: list[tuple[int, int]], piece: int) -> None:
    """Degrees need not be those of a graph."""
    ins = np.array([into for into, _ in sizes], np.int64)
    outs = np.array([out for _, out in sizes], np.int64)
    offsets = np.concatenate([[0], np.cumsum(ins)]).astype(np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "_PIECE", piece)
        found = hubs_of(offsets, outs.astype(np.uint32), IntegerNames(len(sizes), None))
    mean = ins.sum() / max(1, len(sizes))
    expected = sorted(
        (-max(into, out), node)
        for node, (into, out) in enumerate(sizes)
        if max(into, out) > len(sizes) / 5 and max(into, out) >= LEAST
        if max(into, out) >= 2 * mean
    )
    assert found == tuple(Hub(str(node), *sizes[node]) for _, node in expected)


def test_small_graphs_and_dense_ones_have_none(make_graph: MakeGraph) -> None:
    assert make_graph([("index", f"p{i}") for i in range(LEAST - 1)]).hubs == ()
    assert make_graph([("index", f"p{i}") for i in range(LEAST)]).hubs != ()
    every = range(60)
    assert make_graph([(a, b) for a in every for b in every if a != b]).hubs == ()


def test_a_few_are_named_and_the_others_counted() -> None:
    many = [Hub(f"h{i}", 10 * i, 1000 - i) for i in range(5)]
    assert hubs_in_words(many[:1], 1200) == "h0 links to 1,000 of the 1,200 pages"
    assert hubs_in_words([Hub("x", 900, 800), many[1]], 1200) == (
        "900 of the 1,200 pages link to x, h1 links to 999"
    )
    assert hubs_in_words(many[:4], 1200).endswith(
        "h2 links to 998, and 1 more page is linked with more than a fifth"
    )
    assert hubs_in_words(many, 1200).endswith(
        ", and 2 more pages are linked with more than a fifth"
    )


def test_ingest_and_info_name_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "links.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in site()))
    said = "index links to 280 of the 302 pages, 150 link to foot"
    graph = str(tmp_path / "g")
    assert main(["ingest", str(tmp_path / "links.tsv"), "-o", graph, "--format", "json"]) == 0
    out, err = capsys.readouterr()
    told = [line for line in err.splitlines() if said in line]
    assert len(told) == 1
    assert "--exclude-nodes FILE" in told[0]
    assert "--hubs idf" in told[0]
    assert json.loads(out)["hubs"] == [
        {"node": "index", "in_links": 0, "out_links": 280},
        {"node": "foot", "in_links": 150, "out_links": 0},
    ]
    assert main(["info", graph]) == 0
    assert said in " ".join(capsys.readouterr().out.split())
    caplog.clear()
    with caplog.at_level(logging.INFO, "cocite"):
        found = cocite.ingest(tmp_path / "links.tsv", tmp_path / "again", header="no")
    assert [hub.node for hub in found.hubs] == ["index", "foot"]
    assert sum(said in record.getMessage() for record in caplog.records) == 1


def test_nothing_is_said_where_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "links.tsv").write_text("".join(f"p{i}\tp{i + 1}\n" for i in range(300)))
    assert main(["ingest", str(tmp_path / "links.tsv"), "-o", str(tmp_path / "g")]) == 0
    out, err = capsys.readouterr()
    assert "hubs" not in out
    assert "exclude" not in err
