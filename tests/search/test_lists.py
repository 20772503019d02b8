"""Lists of hits: filters, other orders, and several query nodes.

The contract suite tests what holds for every measure.
"""

import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph, Hit, Index, UnknownNode
from cocite.errors import InputError, NotAStore, UsageError
from cocite.search.results import RelatedDocument
from tests.conftest import CliJson, MakeGraph, Shell

SITES = ("http://a.org", "https://a.org", "http://b.org", "http://a.org.uk", "http://ab.org")


@pytest.fixture(scope="module")
def sites(module_graph: MakeGraph) -> Index:
    """100 pages of five sites with similar names; some are bare hosts or have a query string."""
    pages = [f"{site}/{i}" for site in SITES for i in range(18)]
    pages += [*SITES, *(f"{site}?q" for site in SITES)]
    rng = np.random.default_rng(5)
    edges = rng.integers(0, len(pages), (700, 2)).tolist()
    graph = module_graph([(pages[a], pages[b]) for a, b in edges])
    return cocite.build(graph, samples=60, direction="both", measure="psimrank")


PAGE = "http://a.org/3"


def all_hits(sites: Index) -> list[Hit]:
    return sites.related(PAGE, 10**6)


def test_related_offset_pages_through_hits(sites: Index) -> None:
    hits = all_hits(sites)
    assert len(hits) > 50
    for size in (1, 7, 20):
        pages = [sites.related(PAGE, size, offset=low) for low in range(0, len(hits) + size, size)]
        assert [hit for page in pages for hit in page] == hits
    assert sites.related(PAGE, 5, offset=10**6) == []


@pytest.mark.parametrize("prefix", ["http://a.org", "http://a.org/", "http://b.org/1", "", "x"])
def test_related_prefix_filters_hits(sites: Index, prefix: str) -> None:
    hits = all_hits(sites)
    matching = [hit for hit in hits if hit.node.startswith(prefix)]
    assert sites.related(PAGE, 10**6, prefix=prefix) == matching
    assert sites.related(PAGE, 1, prefix=prefix, total=True).total == len(matching)
    assert sites.related(PAGE, 3, prefix=prefix) == matching[:3]
    others = [hit for hit in hits if not hit.node.startswith(prefix)]
    assert sites.related(PAGE, 10**6, exclude_prefix=prefix) == others
    assert all_hits(sites) == hits  # a filter leaves nothing in the scratch memory


def test_related_only_filters_hits(sites: Index) -> None:
    names = [f"http://b.org/{i}" for i in range(18)] + [PAGE]
    names = [name for name in names if name in sites.nodes]
    found = sites.related(PAGE, 10**6, only=names * 2)
    assert found == [hit for hit in all_hits(sites) if hit.node in names]
    assert sites.related(PAGE, only=[]) == []


def test_related_exclude_same_site_compares_hosts(sites: Index) -> None:
    """Whatever the scheme, and with or without a path or query after the host."""

    def site(name: str) -> str:
        return re.split("[/?]", name.split("://", 1)[1])[0]

    expected = [hit for hit in all_hits(sites) if site(hit.node) != "a.org"]
    assert sites.related(PAGE, 10**6, exclude_same_site=True) == expected
    assert {site(hit.node) for hit in expected} == {"b.org", "a.org.uk", "ab.org"}


def test_related_combines_filters(sites: Index) -> None:
    found = sites.related(
        PAGE, 4, offset=1, prefix="http://", exclude_prefix="http://b", min_score=0.01
    )
    expected = [
        hit
        for hit in all_hits(sites)
        if hit.node.startswith("http://")
        and not hit.node.startswith("http://b")
        and hit.score >= 0.01
    ]
    assert found == expected[1:5]


def test_related_prefix_matches_integer_names(make_graph: MakeGraph) -> None:
    rng = np.random.default_rng(5)
    graph = make_graph(rng.integers(0, 40, (300, 2)).tolist())
    index = cocite.build(graph, samples=30, measure="psimrank")
    hits = index.related(3, 100)
    assert index.related(3, 100, prefix="1") == [h for h in hits if h.node.startswith("1")]


def test_related_rejects_invalid_filters(sites: Index, make_graph: MakeGraph) -> None:
    with pytest.raises(UnknownNode, match="nobody"):
        sites.related(PAGE, only=["nobody"])
    with pytest.raises(UsageError, match="only is a single string"):
        sites.related(PAGE, only="http://b.org/1")
    with pytest.raises(UsageError, match=r"offset is -1; it must be a whole number, 0 or more"):
        sites.related(PAGE, offset=-1)
    without_urls = cocite.build(make_graph([("h", "a"), ("h", "b")]), samples=3, measure="psimrank")
    with pytest.raises(UsageError, match="'a' is not a URL, so it has no site"):
        without_urls.related("a", exclude_same_site=True)


PRODUCT, RANK = "score*pagerank", "pagerank"


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    """60 pages, some of them with many in-links."""
    rng = np.random.default_rng(5)
    far = (60 * rng.random((420, 2)) ** 2).astype(int)
    return make_graph(far.tolist(), range(60))


@pytest.fixture
def index(graph: Graph) -> Index:
    return cocite.build(graph, samples=60, measure="psimrank")


def ranked_by(index: Index, ranks: dict[str, float], order: str, hits: list[Hit]) -> list[Hit]:
    """Sort candidates, in the order of scores, by definition; sorting is stable."""

    def key(hit: Hit) -> float:
        return -ranks[hit.node] * (hit.score if order == PRODUCT else 1)

    return sorted(hits, key=key)


@pytest.mark.parametrize("order", [PRODUCT, RANK])
def test_related_order_sorts_candidates(graph: Graph, index: Index, order: str) -> None:
    ranks = dict(cocite.pagerank(graph).top(60))
    for node in ("0", "7", "30"):
        for query in (node, [node, "12"]):
            hits = index.related(query, 60)
            expected = ranked_by(index, ranks, order, hits)
            assert index.related(query, 60, order=order) == expected
            # By default the best 100 are candidates.
            assert index.related(query, 4, order=order) == expected[:4]
            assert index.related(query, 4, offset=2, order=order) == expected[2:6]
            limited = index.related(query, 4, offset=2, order=order, candidates=3, total=True)
            assert (len(limited), limited.total) == (1, 3)
            few_candidates = ranked_by(index, ranks, order, hits[:9])
            assert index.related(query, 5, order=order, candidates=9) == few_candidates[:5]
            assert index.related(query, 60, order=order, candidates=9) == few_candidates
    assert index.related("7", 60, order="score") == index.related("7", 60)


def test_pageranks_equal_pagerank_of_graph(graph: Graph, index: Index) -> None:
    found = cocite.pagerank(graph)
    assert index.pageranks(index.nodes) == found.values.tolist()
    assert index.pageranks(["3"], found.values) == [found.values[index.nodes.id("3")]]


@pytest.mark.parametrize("ending", ["npy", "csv", "parquet"])
def test_related_ranks_accepts_rank_files(
    graph: Graph, index: Index, tmp_path: Path, shell: Shell, ending: str
) -> None:
    path = tmp_path / f"ranks.{ending}"
    shell(["rank", graph.path, "-o", path, "-k", "1"])
    assert index.pageranks(index.nodes, path) == pytest.approx(index.pageranks(index.nodes))
    assert index.related("7", 9, order=RANK, ranks=path) == index.related("7", 9, order=RANK)


def test_related_order_combines_with_refine_and_filters(graph: Graph) -> None:
    index = cocite.build(graph, measure="simrank", samples=60)
    ranks = dict(cocite.pagerank(graph).top(60))
    hits = index.related("7", 100, refine=True)
    found = index.related("7", 5, refine=True, order=PRODUCT)
    assert found == ranked_by(index, ranks, PRODUCT, hits)[:5]
    filtered = index.related("7", 9, only=["3", "5", "9"], order=RANK, min_score=0.001)
    assert [hit.node for hit in filtered] == sorted(
        (hit.node for hit in filtered), key=lambda node: -ranks[node]
    )
    assert {hit.node for hit in filtered} <= {"3", "5", "9"}


@pytest.mark.statistical
def test_related_order_certain_ranks_follow_intervals(graph: Graph) -> None:
    index, found = cocite.build(graph, samples=1500, measure="psimrank"), 0
    for node in map(str, range(0, 60, 12)):
        hits = index.related(node, 60, order=PRODUCT)
        ranks = index.pageranks([hit.node for hit in hits])
        certain = hits.certain_ranks
        found += certain
        lows = [hit.low * rank for hit, rank in zip(hits, ranks, strict=True)]
        highs = [hit.high * rank for hit, rank in zip(hits, ranks, strict=True)]
        apart = [low > max(highs[at:]) for at, low in enumerate(lows[:-1], 1)]
        apart.append(lows[-1] > 0)
        assert certain == (apart.index(False) if False in apart else len(apart))
        assert index.related(node, 3, order=PRODUCT).certain_ranks == min(3, certain)
        hits = index.related(node, 8, order=RANK)
        assert hits.certain_ranks == len(hits)
    assert found > 3


def test_related_order_certain_ranks_consider_all_candidates(graph: Graph) -> None:
    """A page with a wide interval may rank above the first, even if it is not shown."""
    index = cocite.build(graph, samples=1000, measure="psimrank")
    for node in ("0", "7", "30"):
        by_width = sorted(index.related(node, 60), key=lambda hit: (hit.high - hit.low) / hit.score)
        ranks = np.zeros(60)
        for hit, product in zip((*by_width[:2], by_width[-1]), (1.0, 0.82, 0.815), strict=True):
            ranks[index.nodes.id(hit.node)] = product / hit.score
        found = {k: RelatedDocument.of(index, node, k, order=PRODUCT, ranks=ranks) for k in (2, 3)}
        assert [hit.node for hit in found[2].hits] == [hit.node for hit in by_width[:2]]
        assert found[3].hits[:2] == found[2].hits
        assert [document.certain_ranks for document in found.values()] == [0, 0]
        limited = RelatedDocument.of(index, node, 2, order=PRODUCT, ranks=ranks, candidates=2)
        assert limited.hits == index.related(node, 2, order=PRODUCT, ranks=ranks, candidates=2)
        assert not limited.complete


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "rank"}, "order is 'rank'; it must be score or score.pagerank or pagerank"),
        ({"candidates": 9}, "candidates applies only to orders by PageRank"),
        ({"ranks": "r.npy"}, "ranks applies only to orders by PageRank"),
        ({"order": RANK, "candidates": 0}, "candidates is 0; it must be a whole number, 1 or more"),
    ],
)
def test_related_order_rejects_invalid_options(
    index: Index, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        index.related("7", **options)


def test_related_ranks_rejects_invalid_files(index: Index, tmp_path: Path) -> None:
    def check(path: Path, message: str) -> None:
        with pytest.raises(InputError, match=message):
            index.related("7", order=RANK, ranks=path)

    np.save(tmp_path / "short.npy", np.ones(59))
    check(tmp_path / "short.npy", "a number for each of 60 nodes")
    np.save(tmp_path / "nan.npy", np.full(60, np.nan))
    check(tmp_path / "nan.npy", "ranks must be finite numbers, 0 or more")
    (tmp_path / "text.npy").write_text("no array")
    check(tmp_path / "text.npy", "cannot be read")
    (tmp_path / "some.csv").write_text("node,rank\n3,0.5\n")
    check(tmp_path / "some.csv", "has no ranks for 59 nodes, such as '0'")
    with pytest.raises(InputError, match="a number for each"):
        index.pageranks(["3"], np.ones(3))


def test_related_order_requires_graph_or_ranks(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([("h", "a"), ("h", "b"), ("h", "c"), ("a", "b")])
    cocite.build(graph, tmp_path / "i", samples=9, measure="psimrank")
    graph.path.rename(tmp_path / "away")
    index = cocite.open(tmp_path / "i")
    with pytest.raises(NotAStore, match="--graph"):
        index.related("a", order=RANK)
    reopened = cocite.open(tmp_path / "i", graph=tmp_path / "away")
    values = cocite.pagerank(Graph.open(tmp_path / "away")).values
    assert reopened.related("a", order=RANK) == index.related("a", order=RANK, ranks=values)


def test_pageranks_of_selected_index_use_whole_graph(
    graph: Graph, tmp_path: Path, shell: Shell
) -> None:
    selected = [str(v) for v in range(1, 60, 3)]
    index = cocite.build(graph, tmp_path / "k", samples=60, only_nodes=selected, measure="psimrank")
    ranks = dict(cocite.pagerank(graph).top(60))
    assert index.pageranks(selected) == [ranks[name] for name in selected]
    expected = ranked_by(index, ranks, PRODUCT, index.related("7", 60))
    assert index.related("7", 60, order=PRODUCT) == expected
    for ending in ("npy", "csv"):
        path = tmp_path / f"ranks.{ending}"
        shell(["rank", graph.path, "-o", path, "-k", "1"])
        assert index.related("7", 60, order=PRODUCT, ranks=path) == expected


AGGREGATES = ("mean", "min")


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_related_aggregate_on_refreshed_index(
    make_graph: MakeGraph, tmp_path: Path, aggregate: str
) -> None:
    rng = np.random.default_rng(4)
    edges = rng.integers(0, 30, (150, 2)).tolist()
    cocite.build(make_graph(edges, range(30)), tmp_path / "i", samples=40, measure="psimrank")
    newer_edges = [*edges, *rng.integers(20, 36, (60, 2)).tolist()]
    cocite.refresh(tmp_path / "i", make_graph(newer_edges, range(36)), fraction=0.5, force=True)
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


def test_related_several_nodes_applies_filters(make_graph: MakeGraph) -> None:
    """``exclude_same_site`` excludes the sites of all query nodes."""
    pages = [f"http://{site}.org/{i}" for site in "abc" for i in range(4)]
    edges = [("hub", page) for page in pages] + [("other", page) for page in pages[::2]]
    index = cocite.build(make_graph(edges), measure="cocitation")
    nodes = [pages[0], pages[5]]
    unfiltered = {hit.node for hit in index.related(nodes, 99)}
    assert unfiltered == set(pages) - set(nodes)
    other_sites = {hit.node for hit in index.related(nodes, 99, exclude_same_site=True)}
    assert other_sites == set(pages[8:])
    selected = {hit.node for hit in index.related(nodes, 99, only=[*nodes, pages[3]])}
    assert selected == {pages[3]}
    prefixed = {hit.node for hit in index.related(nodes, 99, prefix="http://a")}
    assert prefixed == set(pages[1:4])


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_why_together_adds_up_per_node(index: Index, aggregate: str) -> None:
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


def test_related_several_nodes_rejects_invalid_queries(index: Index) -> None:
    with pytest.raises(UsageError, match="aggregate is 'most'; it must be mean or min"):
        index.related(["3", "7"], aggregate="most")
    with pytest.raises(UsageError, match="no node is given"):
        index.related([])
    with pytest.raises(UnknownNode):
        index.related(["3", "nobody"])
    with pytest.raises(UsageError, match="a refined answer is for one node"):
        index.related(["3", "7"], refine=True)
    with pytest.raises(UsageError, match="'7' is one of the query nodes"):
        index.why_together(["3", "7"], "7")
    assert index.related(("3", "3"), 5) == index.related("3", 5)


# -- the command line ------------------------------------------------------------------


def test_why_command_explains_several_nodes(index: Index, shell: Shell, cli_json: CliJson) -> None:
    path, hit = str(index.stored.store.path), index.related(["3", "7"], 1, aggregate="min")[0]
    command = ["why", path, "3", "7", hit.node, "--aggregate", "min"]
    last = shell(command).out.splitlines()[-1]
    assert last.startswith(f"the score of {hit.node} with 3 and 7 together is {hit.score:.4f}")
    scores = [index.similarity(a, hit.node).score for a in "37"]
    lowest = "37"[int(np.argmin(scores))]
    assert last.endswith(f"the lowest of these, the score with {lowest}")
    facts = cli_json(*command)
    assert facts["score"] == hit.score
    assert [page["node"] for page in facts["pages"]] == ["3", "7"]
    for page in facts["pages"]:
        total = sum(reason["contribution"] for reason in page["reasons"]) + page["remaining"]
        assert total == pytest.approx(page["score"], abs=1e-11)
    rows = list(csv.DictReader(io.StringIO(shell([*command, "--format", "csv"]).out)))
    assert {row["asked"] for row in rows} == {"3", "7"}
    assert cli_json("why", path, "3", "3", hit.node)["a"] == "3"
