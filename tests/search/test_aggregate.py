"""Several nodes asked together: what the contract suite does not ask."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import cocite
from cocite import Index
from cocite.cli.main import main
from cocite.errors import UnknownNode, UsageError
from tests.conftest import MakeGraph

WAYS = ("mean", "min")


@pytest.fixture
def index(make_graph: MakeGraph) -> Index:
    rng = np.random.default_rng(9)
    graph = make_graph(rng.integers(0, 30, (140, 2)).tolist(), range(30))
    return cocite.build(graph, samples=200, measure="psimrank")


@pytest.mark.parametrize("aggregate", WAYS)
def test_pairs_of_refreshed_indexes(make_graph: MakeGraph, tmp_path: Path, aggregate: str) -> None:
    rng = np.random.default_rng(4)
    edges = rng.integers(0, 30, (150, 2)).tolist()
    cocite.build(make_graph(edges, range(30)), tmp_path / "i", samples=40, measure="psimrank")
    more = [*edges, *rng.integers(20, 36, (60, 2)).tolist()]
    cocite.refresh(tmp_path / "i", make_graph(more, range(36)), fraction=0.5, force=True)
    index = cocite.open(tmp_path / "i")
    nodes, found = ["24", "33", "7"], 0
    for hit in index.related(nodes, 40, aggregate=aggregate):
        scores = [index.similarity(a, hit.node).score for a in nodes]
        assert hit.score == pytest.approx(getattr(np, aggregate)(scores), abs=2e-12)
        assert 0 <= hit.low <= hit.score <= hit.high
        found += 1
    assert found > 3
    hits = index.related(nodes, 9, aggregate=aggregate)
    assert 0 <= hits.certain_ranks <= 9


def test_filters_are_those_of_one_node(make_graph: MakeGraph) -> None:
    """And the sites of all of them are left out."""
    pages = [f"http://{site}.org/{i}" for site in "abc" for i in range(4)]
    edges = [("hub", page) for page in pages] + [("other", page) for page in pages[::2]]
    index = cocite.build(make_graph(edges), measure="cocitation")
    asked = [pages[0], pages[5]]
    everyone = {hit.node for hit in index.related(asked, 99)}
    assert everyone == set(pages) - set(asked)
    sites = {hit.node for hit in index.related(asked, 99, exclude_same_site=True)}
    assert sites == set(pages[8:])
    among = {hit.node for hit in index.related(asked, 99, only=[*asked, pages[3]])}
    assert among == {pages[3]}
    prefixed = {hit.node for hit in index.related(asked, 99, prefix="http://a")}
    assert prefixed == set(pages[1:4])


@pytest.mark.parametrize("aggregate", WAYS)
def test_why_says_what_each_node_adds(index: Index, aggregate: str) -> None:
    nodes = ["3", "7", "11"]
    for hit in index.related(nodes, 4, aggregate=aggregate):
        found = index.why_together(nodes, hit.node, 5, aggregate=aggregate)
        assert found.score == hit.score
        assert [page.node for page in found.pages] == nodes
        assert sum(page.contribution for page in found.pages) == pytest.approx(hit.score, abs=3e-12)
        for page in found.pages:
            assert page.score == index.similarity(page.node, hit.node).score
            assert page.why == index.why(page.node, hit.node, 5)
        if aggregate == "min":
            (deciding,) = [page for page in found.pages if page.contribution]
            assert deciding.score == min(page.score for page in found.pages)


def test_what_cannot_be_asked_is_refused(index: Index) -> None:
    with pytest.raises(UsageError, match="aggregate is 'most'; it must be mean or min"):
        index.related(["3", "7"], aggregate="most")
    with pytest.raises(UsageError, match="no node is named"):
        index.related([])
    with pytest.raises(UnknownNode):
        index.related(["3", "nobody"])
    with pytest.raises(UsageError, match="a refined answer is for one node"):
        index.related(["3", "7"], refine=True)
    with pytest.raises(UsageError, match="'7' is one of the query nodes"):
        index.why_together(["3", "7"], "7")
    assert index.related(("3", "3"), 5) == index.related("3", 5)


# -- the command line ------------------------------------------------------------------


def test_shell_why(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    path, hit = str(index.stored.store.path), index.related(["3", "7"], 1, aggregate="min")[0]
    ask = ["why", path, "3", "7", hit.node, "--aggregate", "min"]
    assert main(ask) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"the score of {hit.node} with 3 and 7 together is {hit.score:.4f}")
    scores = [index.similarity(a, hit.node).score for a in "37"]
    assert last.endswith(f"the lowest of these, which is that with {'37'[int(np.argmin(scores))]}")
    assert main([*ask, "--format", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["score"] == hit.score
    assert [page["node"] for page in facts["pages"]] == ["3", "7"]
    for page in facts["pages"]:
        whole = sum(reason["contribution"] for reason in page["reasons"]) + page["remaining"]
        assert whole == pytest.approx(page["score"], abs=1e-11)
    assert main([*ask, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["asked"] for row in rows} == {"3", "7"}
    assert main(["why", path, "3", "3", hit.node, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["a"] == "3"
