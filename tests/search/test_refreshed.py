"""Asking an index with samples of several graphs, against samples by brute force on names."""

import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph, Hit, Index, Why
from cocite.errors import UsageError
from cocite.index.layouts.reader import Span
from cocite.options.query import INTERVALS
from cocite.search import source
from cocite.search.intervals import Draws, around
from tests.batches import all_rows
from tests.conftest import MakeGraph, by_walks
from tests.oracles import betting
from tests.oracles import refreshed as exact
from tests.oracles.betting import Wealth
from tests.oracles.fusion import order
from tests.oracles.graphs import Edges, graphs
from tests.oracles.refreshed import Pairs, Sample

SEED, LENGTH, DECAY = 5, 4, 0.7
STEP = 2 / 2**12
"""How much further out an end may be than where it would be: what halving leaves."""
ALL = 10**6
STEPS = {
    "psimrank": "argmin",
    "simrank": "uniform",
    "compact-simrank": "compact",
    "xjaccard": "rings",
}


def links(seed: int, names: list[str], count: int) -> Pairs:
    rng = np.random.default_rng(seed)
    return {(names[a], names[b]) for a, b in rng.integers(0, len(names), (count, 2)) if a != b}


@dataclass
class Case:
    """An index that was refreshed, its graphs, and its samples by brute force."""

    index: Index
    graphs: list[Graph]
    samples: list[Sample]
    step: str
    directions: list[str]


def refresh_through(
    graphs: list[tuple[Graph, Pairs]], path: Path, share: float, samples: int, **kind: Any
) -> Case:
    """Built from the first graph, refreshed from each of the others."""
    step, direction = STEPS[kind["measure"]], kind.get("direction", "in")

    def drawn(graph: Graph, pairs: Pairs, numbers: range) -> list[Sample]:
        names = list(graph.names)
        return [exact.drawn(names, pairs, step, SEED, number, LENGTH) for number in numbers]

    index = cocite.build(
        graphs[0][0], path, samples=samples, length=LENGTH, seed=SEED, **by_walks(kind)
    )
    held, end, fresh = drawn(*graphs[0], range(samples)), samples, math.ceil(share * samples)
    for graph, pairs in graphs[1:]:
        index = cocite.refresh(path, graph, fraction=share, force=True)
        new = drawn(graph, pairs, range(end, end + fresh))
        held, end = exact.refreshed(held, new, list(graph.names)), end + fresh
    ways = ["in", "out"] if direction == "both" else [direction]
    return Case(index, [graph for graph, _ in graphs], held, step, ways)


OLD = [f"p{i}" for i in range(30)]
NEW = [f"p{i}" for i in range(5, 30)] + [f"a{i}" for i in range(4)] + ["z"]
"""Five are gone; four new ones come before the others in order of names, one behind them."""
CASES = list(itertools.product(STEPS, ("in", "out", "both")))
every = pytest.mark.parametrize(("measure", "direction"), CASES)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Cases by measure and direction, each made once: 30 samples, a fifth refreshed, twice."""
    folder, found = tmp_path_factory.mktemp("refreshed"), {}
    changed = {pair for pair in links(1, OLD, 110) if set(pair) <= set(NEW)}
    days = [
        (links(1, OLD, 110), OLD),
        (changed | links(2, NEW, 40), NEW),
        (links(1, OLD, 110) | links(3, OLD, 20), OLD),
    ]
    stored = []
    for day, (pairs, names) in enumerate(days):
        (folder / f"{day}.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in sorted(pairs)))
        (folder / f"{day}.nodes").write_text("".join(f"{name}\n" for name in names))
        options: dict[str, Any] = {"nodes": folder / f"{day}.nodes", "delimiter": "tab"}
        graph = cocite.ingest(folder / f"{day}.tsv", folder / f"g{day}", header="no", **options)
        stored.append((graph, pairs))

    def get(measure: str, direction: str, refreshes: int) -> Case:
        key = measure, direction, refreshes
        if key not in found:
            path = folder / "-".join(map(str, key))
            kind = {"measure": measure, "direction": direction}
            kind |= {"layout": "trees"} if measure == "compact-simrank" else {}
            found[key] = refresh_through(stored[: refreshes + 1], path, 0.2, 30, **kind)
        return found[key]

    return get


def values(case: Case, a: str, b: str, decay: float = DECAY) -> list[float]:
    return exact.values(case.samples, a, b, decay, case.directions, case.step)


def span_of(case: Case) -> tuple[float, float, float]:
    """The least value, the least that one can stand for, and the most."""
    if case.step == "rings":
        return 0, 0, DECAY - DECAY ** (LENGTH + 1)
    return 0, DECAY ** (LENGTH + 1), DECAY


def most_of(case: Case, a: str, b: str, samples: list[Sample] | None = None) -> list[float]:
    """What each value may stand for at most: a walk that did not meet may have met later."""
    ways, beyond = case.directions, span_of(case)[1]
    each = [
        exact.values(case.samples if samples is None else samples, a, b, DECAY, [way], case.step)
        for way in ways
    ]
    return [sum(x or beyond for x in xs) / len(ways) for xs in zip(*each, strict=True)]


def wealth_for(case: Case, samples: int) -> Wealth:
    """Samples of several graphs are bet on by stakes that are all alike."""
    newest = len(case.index.stored.freshness.newest)
    return betting.most_wealth if samples <= newest else betting.mixed_wealth


def check_scores(case: Case, names: list[str]) -> None:
    """Pairs, lists, errors and intervals of all ``names`` with all nodes."""
    index, span = case.index, span_of(case)
    most = span[2]
    for a in names:
        hits = {hit.node: hit for hit in index.related(a, ALL, decay=DECAY)}
        for b in index.nodes:
            found = index.similarity(a, b, decay=DECAY)
            if a == b:
                assert found.score == pytest.approx(1 if case.step != "rings" else most)
                continue
            samples = values(case, a, b)
            assert found.score == pytest.approx(exact.mean(samples), abs=2e-12)
            if len(case.directions) == 1:  # of both, the variances of each are added
                error = exact.stderr(samples)
                assert found.stderr == pytest.approx(error, abs=1e-7, nan_ok=True)
            if a in names[:3]:
                tops = most_of(case, a, b)
                wealth = wealth_for(case, len(samples))
                low, high = betting.interval(samples, tops, span, 0.95, wealth)
                assert max(0, low - STEP) <= found.low <= low + 1e-9
                assert high - 1e-9 <= found.high <= min(most, high + STEP) + 1e-9
            assert (b in hits) == (found.score > 0)
            if b in hits:
                assert same(hits[b][1:], found)
        ranks = [(-hit.score, order(index.nodes.id(hit.node))) for hit in hits.values()]
        assert ranks == sorted(ranks)


def same(one: Any, other: Any) -> bool:
    return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(one, other, strict=True))


@every
@pytest.mark.parametrize("refreshes", [1, 2])
def test_scores_of_shared_samples(made: Any, measure: str, direction: str, refreshes: int) -> None:
    """Once: p0 to p4 are gone, a0 to a3 and z are new. Twice: p0 to p4 are back, for 6 samples."""
    case = made(measure, direction, refreshes)
    assert sorted(case.index.nodes) == sorted(OLD if refreshes == 2 else NEW)
    known = {len(values(case, a, b)) for a, b in itertools.combinations(case.index.nodes, 2)}
    assert known == {6, 30}
    check_scores(case, ["p7", "p9", "p28"] + (["p0", "p4"] if refreshes == 2 else ["a1", "z"]))


@settings(max_examples=12)
@given(first=graphs(), second=graphs(), third=graphs(), share=st.sampled_from([0.1, 0.34, 0.5]))
def test_scores_on_any_graphs(
    make_graph: MakeGraph,
    first: tuple[int, Edges],
    second: tuple[int, Edges],
    third: tuple[int, Edges],
    share: float,
) -> None:
    """With integers for names, and then texts: 10 comes before 9 among those."""
    stored = []
    for day, (n, edges) in enumerate((first, second, third)):
        names = [str(i) for i in range(n)] + ["a page"] * (day == 1)
        pairs = {(str(a), str(b)) for a, b in edges}
        stored.append((make_graph(sorted(pairs), names), pairs))
    path = stored[0][0].path.with_suffix(".index")
    case = refresh_through(stored, path, share, 6, measure="psimrank")
    check_scores(case, list(case.index.nodes))
    check_batch(case.index, path.with_suffix(".all"), 3)


def check_batch(index: Index, output: Path, k: int, **options: Any) -> None:
    assert all_rows(index, output, k, threads=2, overwrite=True, **options) == [
        (node, rank, hit.node, hit.score, None if math.isnan(hit.stderr) else hit.stderr)
        for node in index.nodes
        for rank, hit in enumerate(index.related(node, k, **options), 1)
    ]


@every
@pytest.mark.parametrize("refreshes", [1, 2])
def test_a_file_of_all_is_the_single_questions(
    made: Any, tmp_path: Path, measure: str, direction: str, refreshes: int
) -> None:
    index = made(measure, direction, refreshes).index
    for k in (1, 5, 100):
        check_batch(index, tmp_path / f"{k}", k)
    check_batch(index, tmp_path / "some", 5, exclude_prefix="p1", min_score=0.2)


def certain(case: Case, a: str, hits: list[Hit], confidence: float) -> int:
    """By the definition, pair after pair, over the samples that know all three; of a list that is
    whole, the last by its own interval.
    """
    least, beyond, most = span_of(case)
    for place, (one, other) in enumerate(itertools.pairwise(hits)):
        shared = [s for s in case.samples if {a, one.node, other.node} <= s.knows]
        ways = (case.directions, case.step)
        ours = exact.values(shared, a, one.node, DECAY, *ways)
        theirs = most_of(case, a, other.node, shared)
        steps = [x - y for x, y in zip(ours, theirs, strict=True)]
        if len(steps) < 2:
            return place
        scaled = [(step - least + most) / (2 * most - least - beyond) for step in steps]
        wealth = wealth_for(case, len(steps))
        end = betting.lower_end(scaled, 2 / (1 - confidence), wealth)
        if end * (2 * most - least - beyond) + least - most <= 0:
            return place
    return len(hits) - (bool(hits) and hits[-1].low <= 0)


@every
def test_order_is_certain_over_shared_samples(made: Any, measure: str, direction: str) -> None:
    case = made(measure, direction, 1)
    for node in ("p7", "p9", "a1", "z"):
        for confidence in (0.95, 0.01):
            everyone = case.index.related(node, ALL, confidence=confidence, decay=DECAY)
            expected = certain(case, node, everyone, confidence)
            for k in (1, 8, ALL):
                hits = case.index.related(node, k, confidence=confidence, decay=DECAY)
                assert hits.certain_ranks == min(expected, k)


# -- why -------------------------------------------------------------------------------


@every
def test_reasons_add_up_on_the_graphs_of_their_samples(
    made: Any, monkeypatch: pytest.MonkeyPatch, measure: str, direction: str
) -> None:
    monkeypatch.setattr(source, "_there", lambda stored, told: None)
    case, rings = made(measure, direction, 1), measure == "xjaccard"
    index, gone, older = case.index, 0, 0.0
    for a, b in [("p7", "p9"), ("p7", "a1"), ("z", "a0"), *itertools.combinations(OLD[8:20], 2)]:
        shares = [
            exact.reasons(case.samples, a, b, DECAY, way, case.step) for way in case.directions
        ]
        found = index.why(a, b, ALL, graph=case.graphs, decay=DECAY)
        assert found.score == index.similarity(a, b, decay=DECAY).score
        total = sum(reason.contribution for reason in found.reasons) + found.unattributed
        assert total == pytest.approx(found.score, abs=1e-9)
        weight, there = len(case.directions), set(index.nodes)
        lost = sum(share for way in shares for page, share in way.items() if page not in there)
        assert found.unattributed == pytest.approx(rings * lost / weight, abs=1e-9)
        for way, expected in zip(case.directions, shares, strict=True):
            pages = {r.node: r.contribution for r in found.reasons if r.links == way}
            placed = {p: s / weight for p, s in expected.items() if not rings or p in there}
            assert pages == pytest.approx(placed, abs=1e-9)
            gone += sum(page not in there for page in expected)
        for reason in () if rings else found.reasons:
            assert (reason.path_a[0], reason.path_b[0]) == (a, b)
            assert reason.path_a[-1] == reason.path_b[-1] == reason.node
        if not rings:
            newest = index.why(a, b, ALL, graph=case.graphs[1], decay=DECAY)
            total = sum(reason.contribution for reason in newest.reasons) + newest.unattributed
            assert total == pytest.approx(newest.score, abs=1e-9)
            assert {r.node for r in newest.reasons} <= there
            older += newest.unattributed
    assert gone > 0
    assert older > 0 or rings


def test_foreign_graph(made: Any, make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    case = made("psimrank", "in", 1)
    with pytest.raises(UsageError, match=r"was called g1 or g0: their checksums differ"):
        case.index.why("p7", "p9", graph=[case.graphs[0], make_graph([("a", "b")])])
    hits = case.index.related("p7", 1)
    # By themselves they are found where they were; where none is, nothing is placed.
    whole = case.index.why("p7", hits[0].node, graph=case.graphs)
    assert case.index.why("p7", hits[0].node) == whole
    assert whole.unattributed == 0
    monkeypatch.setattr(source, "_there", lambda stored, told: None)
    assert case.index.why("p7", hits[0].node) == Why(hits[0].score, [], 0, 0.0, hits[0].score)
    itself = case.index.why("z", "z").reasons[0]
    assert (itself.contribution, itself.samples) == (1, 6)


def test_the_first_samples_of_several_graphs_are_not_a_smaller_index(made: Any) -> None:
    with pytest.raises(UsageError, match=r"was refreshed: its samples come from 2 graphs"):
        made("psimrank", "in", 1).index.with_samples(5)


# -- refined answers -------------------------------------------------------------------


def test_refined_by_newest(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its 6 samples, 30 to 35, and further ones behind them, twice as many each round."""
    monkeypatch.setattr("cocite.search.refine.candidates.MOST_SAMPLES", 1024)
    case, refined = made("psimrank", "in", 1), 0
    kind: dict[str, Any] = {"samples": 30 + 6 * 1024, "length": LENGTH, "seed": SEED}
    whole = cocite.build(case.graphs[1], **by_walks(kind))
    for a, b in [("p7", "p9"), ("z", "a0"), ("p7", "a1"), ("p12", "p28")]:
        found = case.index.similarity(a, b, decay=DECAY, refine=True, target_error=0.05)
        times = whole.scorer.readers[0].meeting_times(*whole.nodes.ids([a, b]).tolist())  # type: ignore[attr-defined]
        values = np.where(times < 16, DECAY ** times.astype(float), 0.0)
        counts = [min(6 * 2**k, 1024) for k in range(9)]
        means = [values[30 : 30 + count].mean() for count in counts]
        assert min(abs(mean - found.score) for mean in means) < 2e-12
        refined += abs(means[0] - found.score) > 1e-9
        truth = values.mean()
        assert found.low - 0.05 <= truth <= found.high + 0.05
    assert refined > 0


def test_refresh_prepares_refined_answers_of_the_newest_graph(made: Any, tmp_path: Path) -> None:
    graphs = made("simrank", "in", 1).graphs
    cocite.build(graphs[0], tmp_path / "x", measure="simrank", samples=10, refine=True)
    index = cocite.refresh(tmp_path / "x", graphs[1], fraction=0.5, force=True)
    fresh = cocite.build(graphs[1], measure="simrank", samples=10, refine=True)
    assert index.stored.refined == fresh.stored.refined
    for node in ("p7", "z", "a1"):
        assert index.related(node, 5, refine=True) == fresh.related(node, 5, refine=True)


# -- blends ----------------------------------------------------------------------------


def test_a_blend_adds_what_is_exact_on_the_newest_graph(made: Any, tmp_path: Path) -> None:
    """Its walks are of both graphs, its common neighbors of the newer one."""
    graphs = made("psimrank", "in", 1).graphs
    blend = "blend:0.75*psimrank+0.25*cocitation"
    kind: dict[str, Any] = {"samples": 30, "length": LENGTH, "seed": SEED}
    cocite.build(graphs[0], tmp_path / "x", measure=blend, **kind)
    index = cocite.refresh(tmp_path / "x", graphs[1], fraction=0.2, force=True)
    walks = made("psimrank", "in", 1)
    common = cocite.build(graphs[1], measure="cocitation")
    for a in ("p7", "p9", "a1", "z"):
        hits = index.related(a, ALL)
        everyone = [Hit(b, *index.similarity(a, b)) for b in index.nodes if b != a]
        ranked = sorted(everyone, key=lambda hit: (-hit.score, order(index.nodes.id(hit.node))))
        assert [hit.node for hit in hits] == [hit.node for hit in ranked if hit.score > 0]
        assert all(same(hit[1:], index.similarity(a, hit.node)) for hit in hits)
        for b in index.nodes:
            if a != b:
                one, other = walks.index.similarity(a, b), common.similarity(a, b)
                expected = 0.75 * one.score + 0.25 * other.score
                assert index.similarity(a, b).score == pytest.approx(expected, abs=2e-12)
                assert index.similarity(a, b).stderr == pytest.approx(0.75 * one.stderr, abs=1e-9)
        found = index.why(a, hits[0].node, ALL, graph=graphs)
        assert found.score == hits[0].score
        assert sum(r.contribution for r in found.reasons) == pytest.approx(found.score, abs=1e-9)
        assert 0 <= hits.certain_ranks <= len(hits)


# -- what errors and intervals are worth -----------------------------------------------


def test_intervals_hold_the_mean_of_means_that_differ() -> None:
    """Values whose mean changes on the way, as between graphs: at least the nominal share."""
    rng = np.random.default_rng(2)
    means = np.repeat([0.1, 0.3, 0.5], [50, 30, 20])
    values = 0.6 * (rng.random((4000, 100)) < means / 0.6)
    draws = Draws(*(np.ascontiguousarray(values.T),) * 2, Span(0.0, 0.0, 0.6), alike=0)
    for bound in INTERVALS:
        found, below, above = around(draws, 0.95, bound)
        held = (found - below <= means.mean()) & (means.mean() <= found + above)
        assert held.mean() >= 0.95
    errors = values.std(axis=1, ddof=1) / 10
    assert errors.mean() >= values.mean(axis=1).std()  # rather too large than too small
