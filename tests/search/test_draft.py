"""Drafts answer as an index of the graph that has the page: every measure, layout and direction.

The page of the larger graph has the name that comes last, so that it has the id of a draft: all
measures are exact to the bit, those of samples as well: draws are keyed by ids. With another id the
samples are others, and scores are equal in distribution only.
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
from tests.measures.test_contract import BY_WEIGHT, CASES, SAMPLES, build, sampled
from tests.oracles import simrank as exact
from tests.oracles.bounds import bernstein
from tests.oracles.graphs import Edges, graphs

LAST = "zzz"
OUT, INTO = ["n7", "n9", "n31", "n150", "n190"], ["n7", "n12", "n181", "alone"]
DRAFTS = {"out only": (OUT, []), "both": (OUT, INTO), "one": (["n8"], []), "into only": ([], INTO)}


def base() -> list[tuple[str, str]]:
    """200 nodes in communities, a hub, a chain, isolated ones: those of the contract suite."""
    rng = np.random.default_rng(8)
    site = rng.integers(0, 180, (900, 1)) // 15 * 15
    edges = [tuple(pair) for pair in (site + rng.integers(0, 15, (900, 2))).tolist()]
    edges += [(7, v) for v in range(0, 180, 3)] + [(v, 8) for v in range(0, 180, 4)]
    edges += [(v, v + 1) for v in range(180, 195)]
    return [(f"n{a}", f"n{b}") for a, b in edges]


def of_page(out: list[str], into: list[str]) -> list[tuple[str, str]]:
    return [(LAST, name) for name in out] + [(name, LAST) for name in into]


def stored(folder: Path, name: str, rows: list[tuple[Any, ...]], **options: Any) -> Graph:
    links, nodes = folder / f"{name}.tsv", folder / "nodes.tsv"
    links.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    nodes.write_text("alone\nalso alone\n")
    options |= {"nodes": nodes, "header": "no", "delimiter": "tab"}
    return cocite.ingest(links, folder / name, **options)


@pytest.fixture(scope="module")
def graph_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str | None], Graph]:
    """The graph, and those with the page of a draft, each made once."""
    folder, made = tmp_path_factory.mktemp("drafts"), dict[str | None, Graph]()

    def get(draft: str | None) -> Graph:
        if draft not in made:
            more = [] if draft is None else of_page(*DRAFTS[draft])
            made[draft] = stored(folder, f"g{len(made)}", base() + more)
            assert draft is None or made[draft].names.id(LAST) == made[draft].nodes - 1
        return made[draft]

    return get


@pytest.fixture
def build_both(graph_of: Callable[[str | None], Graph]) -> Callable[..., list[Index]]:
    """Build the index of the graph, and that of the graph with the page of the draft."""
    return lambda **kind: [cocite.build(graph_of(draft), **kind) for draft in (None, "both")]


@pytest.mark.parametrize(("measure", "layout", "direction"), CASES)
def test_a_draft_answers_as_a_page_of_the_graph_does(
    graph_of: Callable[[str | None], Graph],
    tmp_path: Path,
    measure: Any,
    layout: str | None,
    direction: str,
) -> None:
    index = build(graph_of(None), tmp_path / "before", measure, layout, direction)
    drafts = ("both", "out only") if measure.name in MEASURES else ("both",)
    for number, draft in enumerate(drafts):
        after = build(
            graph_of(draft), tmp_path / str(number), measure, layout, direction, graph_of(None)
        )
        with_it = index.with_draft(*DRAFTS[draft])
        expected = after.related(LAST, 300)
        found = with_it.related("draft", 300)
        assert index.related_to(*DRAFTS[draft], 7) == found[:7]
        if any(part.layout == "rows" for part in index.stored.parts):
            assert_close(found, expected)
            continue
        if any(part.layout == "sketch" for part in index.stored.parts):
            # A draft is answered from whole winners, not from bits of their hashes.
            known = {hit.node: hit for hit in found}
            for hit in expected[:5]:
                mine = known[hit.node]
                assert max(mine.low, hit.low) <= min(mine.high, hit.high)
            continue
        assert found == expected
        assert found.certain_ranks == expected.certain_ranks
        for hit in expected[:3]:
            assert with_it.similarity("draft", hit.node) == after.similarity(LAST, hit.node)


def assert_close(found: list[Hit], expected: list[Hit], most: float = 0.15) -> None:
    """The rows of others stay as they are: what one page changes in them is missing, no more."""
    scores = {hit.node: hit.score for hit in found}
    off = [abs(scores.get(hit.node, 0.0) - hit.score) for hit in expected]
    assert np.mean(off) < 0.02
    assert max(off) < most
    assert len({hit.node for hit in found[:10]} & {hit.node for hit in expected[:10]}) >= 6


def test_drafts_have_what_they_are_to_be_tested_by(graph_of: Callable[[str | None], Graph]) -> None:
    """A hub, a page on a chain, one that nobody is linked with, one that is linked both ways."""
    graph = graph_of(None)
    sizes = {name: graph.in_neighbors(graph.names.id(name)).size for name in ("n8", "n190")}
    assert sizes["n8"] > 40
    assert sizes["n190"] == 1
    assert graph.in_neighbors(graph.names.id("alone")).size == 0
    assert set(OUT) & set(INTO)


WEIGHED_OUT = {page: 0.25 * (1 + i) for i, page in enumerate(OUT)}
WEIGHED_INTO = {page: 2.0 + i for i, page in enumerate(INTO)}


@pytest.fixture(scope="module")
def weighed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Graph]:
    """The graph with weights, and with the page as well."""
    rng, folder = np.random.default_rng(9), tmp_path_factory.mktemp("weighed")
    rows = [(*row, f"{np.exp(rng.normal(0, 2)):.6g}") for row in dict.fromkeys(base())]
    more = [(LAST, page, w) for page, w in WEIGHED_OUT.items()]
    more += [(page, LAST, w) for page, w in WEIGHED_INTO.items()]
    before = stored(folder, "before", rows, weight_column=3)
    return before, stored(folder, "after", [*rows, *more], weight_column=3)


@pytest.mark.parametrize(("name", "layout", "direction", "hubs"), BY_WEIGHT)
def test_a_draft_goes_by_weights(
    weighed: tuple[Graph, Graph], name: str, layout: str | None, direction: str, hubs: str
) -> None:
    chosen: dict[str, Any] = {"measure": name, "layout": layout, "direction": direction}
    chosen |= {"hubs": hubs} if hubs else {}
    chosen |= {"samples": SAMPLES} if "samples" in sampled(name) else {}
    before, after = (cocite.build(graph, **chosen) for graph in weighed)
    found, expected = before.related_to(WEIGHED_OUT, WEIGHED_INTO, 300), after.related(LAST, 300)
    if name in ("fusion", "ppr-pmi"):
        assert_close(found, expected, 0.4)  # one link may weigh more than all others
    else:
        assert found == expected
    equal = before.with_draft(OUT, INTO)  # a link without a weight weighs 1
    assert equal.related("draft") == before.related_to([(page, 1.0) for page in OUT], INTO)


def drawn_page(n: int, data: st.DataObject) -> tuple[list[int], list[int], Edges]:
    """Out-links and in-links of node n, and both as pairs."""
    sides = st.sets(st.integers(0, n - 1))
    out, into = sorted(data.draw(sides)), sorted(data.draw(sides))
    return out, into, [(n, v) for v in out] + [(v, n) for v in into]


@settings(max_examples=20)
@given(graphs(), st.data())
def test_links_with_a_page_are_those_of_the_graph_that_has_it(
    make_graph: MakeGraph, graph: tuple[int, Edges], data: st.DataObject
) -> None:
    n, edges = graph
    out, into, more = drawn_page(n, data)
    weights = data.draw(
        st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(more), max_size=len(more))
    )
    rows = [(a, b, 1 + (a + 2 * b) % 3) for a, b in edges]
    longer = [(a, b, w) for (a, b), w in zip(more, weights, strict=True)]
    if not rows:
        return
    before = make_graph(rows, range(n), weight_column=3)
    after = make_graph(rows + longer, range(n + 1), weight_column=3)
    values = np.array(weights, np.float32)
    page = UnseenPage(
        np.array(out, np.uint32), np.array(into, np.uint32), values[: len(out)], values[len(out) :]
    )
    for way in ("in", "out", "any", "both"):
        for weighted in (False, True):
            for memory in (0, 1 << 30):
                links = links_of(before, way, weighted=weighted)
                scratch = Scratch(before.path)
                found = with_page(links, page, way, memory, scratch)
                expected = links_of(after, way, weighted=weighted)
                for one, other in ((found, expected), (found.back, expected.back)):
                    if one is None or other is None:
                        assert one is other
                        continue
                    assert one.offsets.tolist() == other.offsets.tolist()
                    assert one.neighbors.tolist() == other.neighbors.tolist()
                    if weighted and one.weights is not None and other.weights is not None:
                        assert one.weights.tolist() == other.weights.tolist()
                    assert (one.weights is None) == (other.weights is None) == (not weighted)


@settings(max_examples=25)
@given(
    graphs(),
    st.data(),
    st.sampled_from(["snn", "psimrank", "xjaccard", "neighborhood", "pagesim"]),
    st.sampled_from(["in", "out", "both"]),
)
def test_any_draft_of_any_graph(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    data: st.DataObject,
    measure: str,
    direction: str,
) -> None:
    n, edges = graph
    out, into, more = drawn_page(n, data)
    if not more:
        return
    chosen: dict[str, Any] = {"measure": measure, "direction": direction}
    chosen |= {"samples": 9} if measure in ("psimrank", "xjaccard") else {}
    chosen |= {"neighbors": 3} if measure in ("snn", "neighborhood") else {}
    before = cocite.build(make_graph(edges, range(n)), **chosen)
    after = cocite.build(make_graph(edges + more, range(n + 1)), **chosen)
    asked: list[dict[str, Any]] = [{}]
    if measure == "snn":
        asked += [{"mutual": True}, {"form": "cosine"}, {"form": "cosine", "mutual": True}]
    with_it = before.with_draft(out, into)
    for options in asked:
        expected = after.related(n, n, **options)
        assert with_it.related("draft", n, **options) == expected
        for hit in expected:
            assert with_it.similarity("draft", hit.node, **options) == hit[1:]


@pytest.mark.statistical
def test_samples_of_another_last_id_are_equal_in_distribution(tmp_path: Path) -> None:
    """In a graph that has the page for its first one draws are others; the truth is the same."""
    rows, samples, decay = base(), 2000, 0.6
    out, into = DRAFTS["both"]
    graph = stored(tmp_path, "g", rows)
    index = cocite.build(graph, tmp_path / "i", measure="simrank", samples=samples, length=8)
    found = {hit.node: hit.score for hit in index.related_to(out, into, 300, decay=decay)}
    first = [("a", name) for name in out] + [(name, "a") for name in into]
    whole = stored(tmp_path, "h", rows + first)
    assert whole.names.id("a") == 0
    pairs = [(int(u), v) for v in range(whole.nodes) for u in whole.in_neighbors(v)]
    truth = exact.simrank(exact.dense(whole.nodes, pairs), decay, 8)[0]
    allowed = bernstein(truth, samples, decay, whole.nodes)
    assert len(found) > 50
    for v in range(1, whole.nodes):
        assert abs(found.get(whole.names.name(v), 0.0) - truth[v]) <= allowed[v]


def test_refreshed_draws_newly(graph_of: Callable[[str | None], Graph], tmp_path: Path) -> None:
    old = stored(tmp_path, "old", base()[:-9])
    cocite.build(old, tmp_path / "i", measure="psimrank", samples=20, shard=4)
    index = cocite.refresh(tmp_path / "i", graph_of(None), fraction=0.2, force=True)
    numbers = range(4, 24)
    after = cocite.build(graph_of("both"), tmp_path / "j", measure="psimrank", numbers=numbers)
    assert index.related_to(OUT, INTO, 300) == after.related(LAST, 300)


@pytest.mark.parametrize("measure", ["psimrank", "xjaccard"])
def test_first_and_other_samples(build_both: Callable[..., list[Index]], measure: str) -> None:
    before, after = build_both(measure=measure, numbers=range(7, 27))
    assert before.related_to(OUT, INTO, 300) == after.related(LAST, 300)
    expected = after.with_samples(5).related(LAST, 300)
    assert before.with_samples(5).related_to(OUT, INTO, 300) == expected
    assert before.with_draft(OUT, INTO).with_samples(5).related("draft", 300) == expected


def test_index_with_lost_samples(build_both: Callable[..., list[Index]]) -> None:
    built = build_both(measure="psimrank", samples=20, shard=4)
    paths = [index.stored.store.path for index in built]
    for path in paths:
        (path / "in.samples-000008").unlink()
    one, other = map(cocite.open, paths)
    assert one.samples == 16
    assert one.related_to(OUT, INTO, 300) == other.related(LAST, 300)


@pytest.mark.parametrize("measure", ["neighborhood", "snn", "psimrank", "blend:simrank+pagesim"])
def test_all_that_a_question_can_be_asked_with(
    build_both: Callable[..., list[Index]], measure: str
) -> None:
    before, after = build_both(measure=measure)
    with_it = before.with_draft(OUT, INTO)
    ways: list[dict[str, Any]] = [
        {"prefix": "n1"},
        {"exclude_prefix": "n1", "offset": 3},
        {"only": ["n3", "n9", "n150"]},
        {"min_score": 0.02, "confidence": 0.5},
        {"min_confidence": 0.9},
        {"order": "score*pagerank", "ranks": np.linspace(1, 2, 198)},
    ]
    for options in ways:
        ranks = {"ranks": np.append(options["ranks"], 9.0)} if "ranks" in options else {}
        expected = after.related(LAST, 9, **(options | ranks))
        assert with_it.related("draft", 9, **options) == expected
        assert before.related_to(OUT, INTO, 9, **options) == expected
        assert expected
    together = with_it.related(["draft", "n3"], 9)
    assert together == after.related([LAST, "n3"], 9)
    for hit in after.related(LAST, 4):
        mine, theirs = with_it.why("draft", hit.node), after.why(LAST, hit.node)
        named = repr(theirs).replace(f"'{LAST}'", "'draft'")
        assert repr(mine) == named


def test_evidence_of_a_draft(build_both: Callable[..., list[Index]]) -> None:
    before, after = build_both(measure="simrank")
    expected = after.related(LAST, 50, evidence="geometric")
    assert before.related_to(OUT, INTO, 50, evidence="geometric") == expected
    assert expected


# -- what is given -------------------------------------------------------------------------


def test_other_sites_than_that_of_the_draft(make_graph: MakeGraph) -> None:
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


def test_what_a_draft_is_read_from() -> None:
    text = b"\xef\xbb\xbfZebra\r\n\n-> -> odd\n<- Africa\t2.5\nthe Zoo\t1e-3\n"
    assert UnseenNode.read(text, "f") == UnseenNode(
        [("Zebra", None), ("-> odd", None), ("the Zoo", 1e-3)], [("Africa", 2.5)]
    )
    wrong = "Zebra\tmuch|Zebra\t-1|Zebra\t|\t2|-> |<- \t1|a\t1\t2|a\tnan|a\tinf"
    for line in wrong.split("|"):
        with pytest.raises(InputError, match=r"f:2: .* is not a link of a draft: a name"):
            UnseenNode.read(f"Zebra\n{line}\n".encode(), "f")
    with pytest.raises(InputError, match="not UTF-8 text"):
        UnseenNode.read(b"\xff", "f")


def test_links_that_are_named_twice_count_once_and_their_weights_add_up(tmp_path: Path) -> None:
    rows = [(a, b, 1 + i % 4) for i, (a, b) in enumerate(dict.fromkeys(base()))]
    graph = stored(tmp_path, "g", rows, weight_column=3)
    index = cocite.build(graph, tmp_path / "i", measure="ppr")
    assert index.related_to(["n3", "n3", "n4"]) == index.related_to(["n3", "n4"])
    twice = index.related_to([("n3", 1.5), ("n4", 1.0), ("n3", 0.5)])
    assert twice == index.related_to({"n3": 2.0, "n4": 1.0}) != index.related_to(["n3", "n4"])


def test_what_is_refused(graph_of: Callable[[str | None], Graph]) -> None:
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
    kept = cocite.build(graph, measure="psimrank", only_prefix="n1")
    with pytest.raises(UsageError, match=r"contains only .* a draft may link to others"):
        kept.related_to(["n3"])


def test_the_name_of_a_draft_is_none_of_the_graph(make_graph: MakeGraph) -> None:
    rows = [("draft", "a"), ("draft", "b"), ("c", "a"), ("c", "b"), ("(draft)", "a")]
    index = cocite.build(make_graph(rows), measure="coupling")
    with_it = index.with_draft(["a", "b"])
    assert len(with_it.nodes) == len(index.nodes) + 1
    assert list(with_it.nodes)[-1] == "((draft))"
    assert with_it.nodes.names(with_it.nodes.with_prefix("dr")) == ["draft"]
    hits = [(hit.node, hit.score) for hit in with_it.related("((draft))")]
    assert sorted(hits)[1:] == [("c", 1.0), ("draft", 1.0)]
    assert "draft" not in [hit.node for hit in with_it.related("draft")]


def test_missing_graph_fails_only_where_needed(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([("a", "b"), ("a", "c"), ("b", "c")])
    own = cocite.build(graph, measure="cocitation")
    walks = cocite.build(graph, tmp_path / "j", measure="psimrank")
    graph.path.rename(graph.path.with_name("elsewhere"))
    assert own.related_to([], ["a"])
    with pytest.raises(cocite.CociteError, match="Pass its path with --graph"):
        walks.related_to([], ["a"])
    there = cocite.open(tmp_path / "j", graph=graph.path.with_name("elsewhere"))
    assert isinstance(there, Index)
    assert there.related_to([], ["a"])
