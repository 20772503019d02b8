"""Lists that are filtered and paged: always those of the whole list."""

import re

import numpy as np
import pytest

import cocite
from cocite import Hit, Index, UnknownNode
from cocite.errors import UsageError
from tests.conftest import MakeGraph

SITES = ("http://a.org", "https://a.org", "http://b.org", "http://a.org.uk", "http://ab.org")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """100 pages of five sites with similar names, all mixed up; some are bare hosts or queries."""
    folder = tmp_path_factory.mktemp("filters")
    pages = [f"{site}/{i}" for site in SITES for i in range(18)]
    pages += [*SITES, *(f"{site}?q" for site in SITES)]
    rng = np.random.default_rng(5)
    edges = rng.integers(0, len(pages), (700, 2)).tolist()
    (folder / "l.tsv").write_text("".join(f"{pages[a]}\t{pages[b]}\n" for a, b in edges))
    graph = cocite.ingest(folder / "l.tsv", folder / "g", delimiter="tab", header="no")
    return cocite.build(graph, folder / "i", samples=60, direction="both", measure="psimrank")


PAGE = "http://a.org/3"


def whole(index: Index) -> list[Hit]:
    return index.related(PAGE, 10**6)


def test_pages_of_a_list_are_the_list(index: Index) -> None:
    hits = whole(index)
    assert len(hits) > 50
    for size in (1, 7, 20):
        pages = [index.related(PAGE, size, offset=low) for low in range(0, len(hits) + size, size)]
        assert [hit for page in pages for hit in page] == hits
    assert index.related(PAGE, 5, offset=10**6) == []


@pytest.mark.parametrize("prefix", ["http://a.org", "http://a.org/", "http://b.org/1", "", "x"])
def test_prefixes(index: Index, prefix: str) -> None:
    hits = whole(index)
    only = [hit for hit in hits if hit.node.startswith(prefix)]
    assert index.related(PAGE, 10**6, prefix=prefix) == only
    assert index.related(PAGE, 1, prefix=prefix, total=True).total == len(only)
    assert index.related(PAGE, 3, prefix=prefix) == only[:3]
    rest = [hit for hit in hits if not hit.node.startswith(prefix)]
    assert index.related(PAGE, 10**6, exclude_prefix=prefix) == rest


def test_a_list_of_nodes(index: Index) -> None:
    names = [f"http://b.org/{i}" for i in range(18)] + [PAGE]
    names = [name for name in names if name in index.nodes]
    found = index.related(PAGE, 10**6, only=names * 2)
    assert found == [hit for hit in whole(index) if hit.node in names]
    assert index.related(PAGE, only=[]) == []


def test_other_sites_are_those_of_another_host(index: Index) -> None:
    """Whatever the scheme, and with nothing, a path or a query behind the host."""

    def site(name: str) -> str:
        return re.split("[/?]", name.split("://", 1)[1])[0]

    expected = [hit for hit in whole(index) if site(hit.node) != "a.org"]
    assert index.related(PAGE, 10**6, exclude_same_site=True) == expected
    assert {site(hit.node) for hit in expected} == {"b.org", "a.org.uk", "ab.org"}


def test_filters_join(index: Index) -> None:
    found = index.related(
        PAGE, 4, offset=1, prefix="http://", exclude_prefix="http://b", min_score=0.01
    )
    expected = [
        hit
        for hit in whole(index)
        if hit.node.startswith("http://")
        and not hit.node.startswith("http://b")
        and hit.score >= 0.01
    ]
    assert found == expected[1:5]


def test_a_query_after_a_filtered_one_finds_everything(index: Index) -> None:
    """What a filter forgot must not stay behind in the scratch memory."""
    before = whole(index)
    index.related(PAGE, 3, prefix="http://b.org/1")
    assert whole(index) == before


def test_integer_names_have_prefixes_too(make_graph: MakeGraph) -> None:
    rng = np.random.default_rng(5)
    graph = make_graph(rng.integers(0, 40, (300, 2)).tolist())
    index = cocite.build(graph, samples=30, measure="psimrank")
    hits = index.related(3, 100)
    assert index.related(3, 100, prefix="1") == [h for h in hits if h.node.startswith("1")]


def test_wrong_filters_are_refused(index: Index, make_graph: MakeGraph) -> None:
    with pytest.raises(UnknownNode, match="nobody"):
        index.related(PAGE, only=["nobody"])
    with pytest.raises(UsageError, match="only is a single text"):
        index.related(PAGE, only="http://b.org/1")
    with pytest.raises(UsageError, match=r"offset is -1; it must be a whole number, 0 or more"):
        index.related(PAGE, offset=-1)
    plain = cocite.build(make_graph([("h", "a"), ("h", "b")]), samples=3, measure="psimrank")
    with pytest.raises(UsageError, match="'a' is not a URL, so it has no site"):
        plain.related("a", exclude_same_site=True)
