"""A draft scores like a page of the graph, for every measure, layout and direction.

In the larger graph the page has the name that sorts last, and so the id of a draft. As draws are
keyed by ids, scores are then equal to the bit, even those of samples. With another id they are
equal in distribution only.
"""

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph, Hit, Index
from cocite.errors import InputError, UsageError
from cocite.graph.graph import UnseenPage, with_page
from cocite.graph.links import links_of
from cocite.measures import MEASURES
from cocite.search.unseen import UnseenNode
from cocite.storage.spool import Scratch
from tests.conftest import MakeGraph
from tests.measures.test_contract import BY_WEIGHT, SAMPLES, build, sampled, some
from tests.oracles import simrank as exact
from tests.oracles.bounds import bernstein
from tests.oracles.graphs import Edges, graphs

LAST = "zzz"
OUT_LINKS, IN_LINKS = ["n7", "n9", "n31", "n150", "n190"], ["n7", "n12", "n181", "alone"]
DRAFTS = {
    "out only": (OUT_LINKS, []),
    "both": (OUT_LINKS, IN_LINKS),
    "one": (["n8"], []),
    "into only": ([], IN_LINKS),
}


def base_links() -> list[tuple[str, str]]:
    """200 nodes in communities, a hub and a chain: those of the contract suite."""
    rng = np.random.default_rng(8)
    site = rng.integers(0, 180, (900, 1)) // 15 * 15
    edges = [tuple(pair) for pair in (site + rng.integers(0, 15, (900, 2))).tolist()]
    edges += [(7, v) for v in range(0, 180, 3)] + [(v, 8) for v in range(0, 180, 4)]
    edges += [(v, v + 1) for v in range(180, 195)]
    return [(f"n{a}", f"n{b}") for a, b in edges]


def page_links(out: list[str], into: list[str]) -> list[tuple[str, str]]:
    return [(LAST, name) for name in out] + [(name, LAST) for name in into]


def ingest_rows(folder: Path, name: str, rows: list[tuple[Any, ...]], **options: Any) -> Graph:
    links, nodes = folder / f"{name}.tsv", folder / "nodes.tsv"
    links.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    nodes.write_text("alone\nalso alone\n")
    options |= {"nodes": nodes, "header": "no", "delimiter": "tab"}
    return cocite.ingest(links, folder / name, **options)


@pytest.fixture(scope="module")
def graph_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str | None], Graph]:
    """The graph, or the one with the page of a draft, each built once."""
    folder, cached = tmp_path_factory.mktemp("drafts"), dict[str | None, Graph]()

    def get(draft: str | None) -> Graph:
        if draft not in cached:
            extra = [] if draft is None else page_links(*DRAFTS[draft])
            cached[draft] = ingest_rows(folder, f"g{len(cached)}", base_links() + extra)
            assert draft is None or cached[draft].names.id(LAST) == cached[draft].nodes - 1
        return cached[draft]

    return get


@pytest.fixture
def build_both(graph_of: Callable[[str | None], Graph]) -> Callable[..., list[Index]]:
    """Build an index of the graph, and one of the graph with the page of the draft."""
    return lambda **options: [cocite.build(graph_of(draft), **options) for draft in (None, "both")]


@some
def test_draft_equals_page_of_graph(
    graph_of: Callable[[str | None], Graph],
    tmp_path: Path,
    measure: Any,
    layout: str | None,
    direction: str,
) -> None:
    index = build(graph_of(None), tmp_path / "before", measure, layout, direction)
    mixes = measure.name in MEASURES and direction not in ("in", "out")
    drafts = ("both", "out only") if mixes else ("both",)
    for number, draft in enumerate(drafts):
        after = build(
            graph_of(draft), tmp_path / str(number), measure, layout, direction, graph_of(None)
        )
        with_draft = index.with_draft(*DRAFTS[draft])
        expected = after.related(LAST, 300)
        found = with_draft.related("draft", 300)
        assert index.related_to(*DRAFTS[draft], 7) == found[:7]
        if any(part.layout == "rows" for part in index.stored.parts):
            assert_close(found, expected)
            continue
        if any(part.layout == "sketch" for part in index.stored.parts):
            # Drafts compare whole winners, not bits of their hashes.
            by_node = {hit.node: hit for hit in found}
            for hit in expected[:5]:
                actual = by_node[hit.node]
                assert max(actual.low, hit.low) <= min(actual.high, hit.high)
            continue
        assert found == expected
        assert found.certain_ranks == expected.certain_ranks
        for hit in expected[:3]:
            assert with_draft.similarity("draft", hit.node) == after.similarity(LAST, hit.node)


def assert_close(found: list[Hit], expected: list[Hit], limit: float = 0.15) -> None:
    """Allow for stored rows of other pages, which do not know the draft."""
    scores = {hit.node: hit.score for hit in found}
    errors = [abs(scores.get(hit.node, 0.0) - hit.score) for hit in expected]
    assert np.mean(errors) < 0.02
    assert max(errors) < limit
    assert len({hit.node for hit in found[:10]} & {hit.node for hit in expected[:10]}) >= 6


def test_draft_cases_cover_link_structures(graph_of: Callable[[str | None], Graph]) -> None:
    """The drafts link to a hub, a chain, an isolated page, and one page both ways."""
    graph = graph_of(None)
    sizes = {name: graph.in_neighbors(graph.names.id(name)).size for name in ("n8", "n190")}
    assert sizes["n8"] > 40
    assert sizes["n190"] == 1
    assert graph.in_neighbors(graph.names.id("alone")).size == 0
    assert set(OUT_LINKS) & set(IN_LINKS)


WEIGHTED_OUT = {page: 0.25 * (1 + i) for i, page in enumerate(OUT_LINKS)}
WEIGHTED_IN = {page: 2.0 + i for i, page in enumerate(IN_LINKS)}


@pytest.fixture(scope="module")
def weighted_graphs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Graph]:
    """The graph with weights, without and with the page."""
    rng, folder = np.random.default_rng(9), tmp_path_factory.mktemp("weighed")
    rows = [(*row, f"{np.exp(rng.normal(0, 2)):.6g}") for row in dict.fromkeys(base_links())]
    page_rows = [(LAST, page, w) for page, w in WEIGHTED_OUT.items()]
    page_rows += [(page, LAST, w) for page, w in WEIGHTED_IN.items()]
    before = ingest_rows(folder, "before", rows, weight_column=3)
    return before, ingest_rows(folder, "after", [*rows, *page_rows], weight_column=3)


@pytest.mark.parametrize(("name", "layout", "direction", "hubs"), BY_WEIGHT)
def test_draft_uses_link_weights(
    weighted_graphs: tuple[Graph, Graph], name: str, layout: str | None, direction: str, hubs: str
) -> None:
    options: dict[str, Any] = {"measure": name, "layout": layout, "direction": direction}
    options |= {"hubs": hubs} if hubs else {}
    options |= {"samples": SAMPLES} if "samples" in sampled(name) else {}
    before, after = (cocite.build(graph, **options) for graph in weighted_graphs)
    found, expected = before.related_to(WEIGHTED_OUT, WEIGHTED_IN, 300), after.related(LAST, 300)
    if name in ("fusion", "ppr-pmi"):
        assert_close(found, expected, 0.4)  # one link may outweigh all others
    else:
        assert found == expected
    unweighted = before.with_draft(OUT_LINKS, IN_LINKS)  # the default weight is 1
    assert unweighted.related("draft") == before.related_to(
        [(page, 1.0) for page in OUT_LINKS], IN_LINKS
    )


def draw_page(n: int, data: st.DataObject) -> tuple[list[int], list[int], Edges]:
    """Draw out-links and in-links of node n; also return both as pairs."""
    links = st.sets(st.integers(0, n - 1))
    out, into = sorted(data.draw(links)), sorted(data.draw(links))
    return out, into, [(n, v) for v in out] + [(v, n) for v in into]


@settings(max_examples=20)
@given(graphs(), st.data())
def test_with_page_links_equal_larger_graph(
    make_graph: MakeGraph, graph: tuple[int, Edges], data: st.DataObject
) -> None:
    n, edges = graph
    out, into, added = draw_page(n, data)
    weights = data.draw(
        st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(added), max_size=len(added))
    )
    rows = [(a, b, 1 + (a + 2 * b) % 3) for a, b in edges]
    page_rows = [(a, b, w) for (a, b), w in zip(added, weights, strict=True)]
    if not rows:
        return
    before = make_graph(rows, range(n), weight_column=3)
    after = make_graph(rows + page_rows, range(n + 1), weight_column=3)
    values = np.array(weights, np.float32)
    page = UnseenPage(
        np.array(out, np.uint32), np.array(into, np.uint32), values[: len(out)], values[len(out) :]
    )
    for way in ("in", "out", "any", "both"):
        for weighted in (False, True):
            for memory in (0, 1 << 30):
                links = links_of(before, way, weighted=weighted)
                scratch = Scratch(before.path)
                combined = with_page(links, page, way, memory, scratch)
                reference = links_of(after, way, weighted=weighted)
                for actual, expected in ((combined, reference), (combined.back, reference.back)):
                    if actual is None or expected is None:
                        assert actual is expected
                        continue
                    assert actual.offsets.tolist() == expected.offsets.tolist()
                    assert actual.neighbors.tolist() == expected.neighbors.tolist()
                    if weighted and actual.weights is not None and expected.weights is not None:
                        assert actual.weights.tolist() == expected.weights.tolist()
                    assert (actual.weights is None) == (expected.weights is None) == (not weighted)


@settings(max_examples=25)
@given(
    graphs(),
    st.data(),
    st.sampled_from(["snn", "psimrank", "xjaccard", "neighborhood", "pagesim"]),
    st.sampled_from(["in", "out", "both"]),
)
def test_draft_equals_page_on_random_graphs(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    data: st.DataObject,
    measure: str,
    direction: str,
) -> None:
    n, edges = graph
    out, into, added = draw_page(n, data)
    if not added:
        return
    build_options: dict[str, Any] = {"measure": measure, "direction": direction}
    build_options |= {"samples": 9} if measure in ("psimrank", "xjaccard") else {}
    build_options |= {"neighbors": 3} if measure in ("snn", "neighborhood") else {}
    before = cocite.build(make_graph(edges, range(n)), **build_options)
    after = cocite.build(make_graph(edges + added, range(n + 1)), **build_options)
    queries: list[dict[str, Any]] = [{}]
    if measure == "snn":
        queries += [{"mutual": True}, {"form": "cosine"}, {"form": "cosine", "mutual": True}]
    with_draft = before.with_draft(out, into)
    for options in queries:
        expected = after.related(n, n, **options)
        assert with_draft.related("draft", n, **options) == expected
        for hit in expected:
            assert with_draft.similarity("draft", hit.node, **options) == hit[1:]


@pytest.mark.statistical
def test_draft_samples_match_distribution_for_other_id(tmp_path: Path) -> None:
    """As the first node of a graph, the page gets other draws, but the same exact scores."""
    rows, samples, decay = base_links(), 1000, 0.6
    out, into = DRAFTS["both"]
    graph = ingest_rows(tmp_path, "g", rows)
    index = cocite.build(graph, tmp_path / "i", measure="simrank", samples=samples, length=8)
    scores = {hit.node: hit.score for hit in index.related_to(out, into, 300, decay=decay)}
    page_rows = [("a", name) for name in out] + [(name, "a") for name in into]
    full = ingest_rows(tmp_path, "h", rows + page_rows)
    assert full.names.id("a") == 0
    pairs = [(int(u), v) for v in range(full.nodes) for u in full.in_neighbors(v)]
    truth = exact.simrank(exact.dense(full.nodes, pairs), decay, 8)[0]
    allowed = bernstein(truth, samples, decay, full.nodes)
    assert len(scores) > 50
    for v in range(1, full.nodes):
        assert abs(scores.get(full.names.name(v), 0.0) - truth[v]) <= allowed[v]


def test_draft_on_refreshed_index_uses_new_samples(
    graph_of: Callable[[str | None], Graph], tmp_path: Path
) -> None:
    old = ingest_rows(tmp_path, "old", base_links()[:-9])
    cocite.build(old, tmp_path / "i", measure="psimrank", samples=20, shard=4)
    index = cocite.refresh(tmp_path / "i", graph_of(None), fraction=0.2, force=True)
    numbers = range(4, 24)
    after = cocite.build(graph_of("both"), tmp_path / "j", measure="psimrank", numbers=numbers)
    assert index.related_to(OUT_LINKS, IN_LINKS, 300) == after.related(LAST, 300)


@pytest.mark.parametrize("measure", ["psimrank", "xjaccard"])
def test_draft_respects_numbers_and_with_samples(
    build_both: Callable[..., list[Index]], measure: str
) -> None:
    before, after = build_both(measure=measure, numbers=range(7, 27))
    assert before.related_to(OUT_LINKS, IN_LINKS, 300) == after.related(LAST, 300)
    expected = after.with_samples(5).related(LAST, 300)
    assert before.with_samples(5).related_to(OUT_LINKS, IN_LINKS, 300) == expected
    assert before.with_draft(OUT_LINKS, IN_LINKS).with_samples(5).related("draft", 300) == expected


def test_draft_on_index_with_lost_samples(build_both: Callable[..., list[Index]]) -> None:
    indexes = build_both(measure="psimrank", samples=20, shard=4)
    paths = [index.stored.store.path for index in indexes]
    for path in paths:
        (path / "in.samples-000008").unlink()
    before, after = map(cocite.open, paths)
    assert before.samples == 16
    assert before.related_to(OUT_LINKS, IN_LINKS, 300) == after.related(LAST, 300)


@pytest.mark.parametrize("measure", ["neighborhood", "psimrank", "blend:simrank+pagesim"])
def test_draft_accepts_all_query_options(
    build_both: Callable[..., list[Index]], measure: str
) -> None:
    options: dict[str, Any] = {"samples": 30} if "samples" in sampled(measure) else {}
    before, after = build_both(measure=measure, **options)
    with_draft = before.with_draft(OUT_LINKS, IN_LINKS)
    queries: list[dict[str, Any]] = [
        {"prefix": "n1"},
        {"exclude_prefix": "n1", "offset": 3},
        {"only": ["n3", "n9", "n150"]},
        {"min_score": 0.02, "confidence": 0.5},
        {"min_confidence": 0.9},
        {"order": "score*pagerank", "ranks": np.linspace(1, 2, 198)},
    ]
    queries += [{"evidence": "geometric"}] * (measure == "psimrank")
    for options in queries:
        ranks = {"ranks": np.append(options["ranks"], 9.0)} if "ranks" in options else {}
        expected = after.related(LAST, 9, **(options | ranks))
        assert with_draft.related("draft", 9, **options) == expected
        assert before.related_to(OUT_LINKS, IN_LINKS, 9, **options) == expected
        assert expected
    hits = with_draft.related(["draft", "n3"], 9)
    assert hits == after.related([LAST, "n3"], 9)
    for hit in after.related(LAST, 4):
        actual, expected_why = with_draft.why("draft", hit.node), after.why(LAST, hit.node)
        renamed = repr(expected_why).replace(f"'{LAST}'", "'draft'")
        assert repr(actual) == renamed


# -- input ---------------------------------------------------------------------------------


def test_draft_exclude_same_site_uses_draft_name(make_graph: MakeGraph) -> None:
    names = [f"http://{site}.example/{page}" for site in "ab" for page in range(6)]
    rows = list(itertools.permutations(names[:4], 2)) + list(
        itertools.product(names[:3], names[6:])
    )
    index = cocite.build(make_graph(rows))
    name = "http://a.example/new"
    found = index.related_to(names[:3], names[7:9], name=name, exclude_same_site=True)
    assert found
    assert all("//b." in hit.node for hit in found)
    with pytest.raises(UsageError, match="'draft' is not a URL"):
        index.related_to(names[:3], exclude_same_site=True)


def test_unseen_node_reads_draft_files() -> None:
    text = b"\xef\xbb\xbfZebra\r\n\n-> -> odd\n<- Africa\t2.5\nthe Zoo\t1e-3\n"
    assert UnseenNode.read(text, "f") == UnseenNode(
        [("Zebra", None), ("-> odd", None), ("the Zoo", 1e-3)], [("Africa", 2.5)]
    )
    invalid = "Zebra\tmuch|Zebra\t-1|Zebra\t|\t2|-> |<- \t1|a\t1\t2|a\tnan|a\tinf"
    for line in invalid.split("|"):
        with pytest.raises(InputError, match=r"f:2: .* is not a link of a draft: a name"):
            UnseenNode.read(f"Zebra\n{line}\n".encode(), "f")
    with pytest.raises(InputError, match="not UTF-8 text"):
        UnseenNode.read(b"\xff", "f")


def test_draft_merges_repeated_links(tmp_path: Path) -> None:
    rows = [(a, b, 1 + i % 4) for i, (a, b) in enumerate(dict.fromkeys(base_links()))]
    graph = ingest_rows(tmp_path, "g", rows, weight_column=3)
    index = cocite.build(graph, tmp_path / "i", measure="ppr")
    assert index.related_to(["n3", "n3", "n4"]) == index.related_to(["n3", "n4"])
    merged = index.related_to([("n3", 1.5), ("n4", 1.0), ("n3", 0.5)])
    assert merged == index.related_to({"n3": 2.0, "n4": 1.0}) != index.related_to(["n3", "n4"])


def test_draft_rejects_invalid_links_and_options(graph_of: Callable[[str | None], Graph]) -> None:
    graph = graph_of(None)
    index = cocite.build(graph)
    with pytest.raises(UsageError, match=r"2 unknown pages: 'n777' \(the nearest name is"):
        index.related_to(["n3", "n777"], ["nothing like it"])
    skipped = index.related_to(["n3", "n777"], ["nothing like it"], skip_unknown=True)
    assert skipped == index.related_to(["n3"])
    for links in ([], ["n777"]):
        with pytest.raises(UsageError, match="the draft has no link"):
            index.related_to(links, skip_unknown=True)
    with pytest.raises(UsageError, match="the index ignores weights: omit the weights"):
        index.related_to({"n3": 2.0})
    with pytest.raises(UsageError, match="out is a single string"):
        index.related_to("n3")
    for link in (("n3", 0), ("n3", "much"), ("n3",), ("n3", math.inf)):
        with pytest.raises(
            UsageError, match=r"into has .*; a link must be a name, or \(name, weight"
        ):
            index.related_to([], [link])
    with pytest.raises(
        UsageError, match="'n3' is the name of a node: choose another name for the draft"
    ):
        index.related_to(["n3"], name="n3")
    with pytest.raises(UsageError, match="omit refine"):
        index.related_to(["n3"], refine=True)
    with pytest.raises(UsageError, match="already has a draft"):
        index.with_draft(["n3"]).with_draft(["n4"])
    selected = cocite.build(graph, measure="psimrank", only_prefix="n1")
    with pytest.raises(UsageError, match=r"contains only .* a draft may link to others"):
        selected.related_to(["n3"])


def test_draft_name_avoids_graph_names(make_graph: MakeGraph) -> None:
    rows = [("draft", "a"), ("draft", "b"), ("c", "a"), ("c", "b"), ("(draft)", "a")]
    index = cocite.build(make_graph(rows), measure="coupling")
    with_draft = index.with_draft(["a", "b"])
    assert len(with_draft.nodes) == len(index.nodes) + 1
    assert list(with_draft.nodes)[-1] == "((draft))"
    assert with_draft.nodes.names(with_draft.nodes.with_prefix("dr")) == ["draft"]
    hits = [(hit.node, hit.score) for hit in with_draft.related("((draft))")]
    assert sorted(hits)[1:] == [("c", 1.0), ("draft", 1.0)]
    assert "draft" not in [hit.node for hit in with_draft.related("draft")]


def test_draft_needs_graph_only_for_walks(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([("a", "b"), ("a", "c"), ("b", "c")])
    cocitation = cocite.build(graph, measure="cocitation")
    walks = cocite.build(graph, tmp_path / "j", measure="psimrank")
    graph.path.rename(graph.path.with_name("elsewhere"))
    assert cocitation.related_to([], ["a"])
    with pytest.raises(cocite.CociteError, match="Pass its path with --graph"):
        walks.related_to([], ["a"])
    reopened = cocite.open(tmp_path / "j", graph=graph.path.with_name("elsewhere"))
    assert isinstance(reopened, Index)
    assert reopened.related_to([], ["a"])


@pytest.mark.long
def test_draft_accepts_evidence(build_both: Callable[..., list[Index]]) -> None:
    before, after = build_both(measure="simrank")
    expected = after.related(LAST, 50, evidence="geometric")
    assert before.related_to(OUT_LINKS, IN_LINKS, 50, evidence="geometric") == expected
    assert expected
