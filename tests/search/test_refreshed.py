"""Queries of an index with samples of several graphs, against brute-force samples by name."""

import itertools
import math
from dataclasses import dataclass, replace
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
from tests.conftest import MakeGraph, with_psimrank
from tests.oracles import betting
from tests.oracles import refreshed as exact
from tests.oracles.betting import Wealth
from tests.oracles.fusion import order
from tests.oracles.graphs import Edges, graphs
from tests.oracles.refreshed import Pairs, Sample

SEED, LENGTH, DECAY = 5, 4, 0.7
STEP = 2 / 2**12
"""The tolerance of an interval end, which is found by bisection."""
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
    """A refreshed index, its graphs, and its samples by brute force."""

    index: Index
    graphs: list[Graph]
    samples: list[Sample]
    step: str
    directions: list[str]


DRAWN: dict[tuple[str, str, int], Sample] = {}
"""Samples by digest of the graph, kind of step and number: drawing one takes 10 ms."""


def refresh_through(
    graphs: list[tuple[Graph, Pairs]], path: Path, share: float, samples: int, **options: Any
) -> Case:
    """Build an index from the first graph, and refresh it from each of the others."""
    step, direction = STEPS[options["measure"]], options.get("direction", "in")

    def draw(graph: Graph, pairs: Pairs, numbers: range) -> list[Sample]:
        names = list(graph.names)
        for number in numbers:
            key = graph.digest, step, number
            if key not in DRAWN:
                DRAWN[key] = exact.drawn(names, pairs, step, SEED, number, LENGTH)
        return [replace(DRAWN[graph.digest, step, n], knows=set(names)) for n in numbers]

    index = cocite.build(
        graphs[0][0], path, samples=samples, length=LENGTH, seed=SEED, **with_psimrank(options)
    )
    drawn, end, fresh = draw(*graphs[0], range(samples)), samples, math.ceil(share * samples)
    for graph, pairs in graphs[1:]:
        index = cocite.refresh(path, graph, fraction=share, force=True)
        new = draw(graph, pairs, range(end, end + fresh))
        drawn, end = exact.refreshed(drawn, new, list(graph.names)), end + fresh
    directions = ["in", "out"] if direction == "both" else [direction]
    return Case(index, [graph for graph, _ in graphs], drawn, step, directions)


OLD = [f"p{i}" for i in range(30)]
NEW = [f"p{i}" for i in range(5, 30)] + [f"a{i}" for i in range(4)] + ["z"]
"""Five are gone; by name, four of the new ones sort first, and one sorts last."""
CASES = [
    (measure, direction, 1 + (i + j) % 2)
    for i, measure in enumerate(STEPS)
    for j, direction in enumerate(("in", "both", "out"))
    if direction != "out" or measure == "psimrank"
]
"""Every measure and every direction after one refresh and after two (out-links: after one)."""
once_or_twice = pytest.mark.parametrize(("measure", "direction", "refreshes"), CASES)
all_cases = pytest.mark.parametrize(("measure", "direction"), [case[:2] for case in CASES])


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Cases, each built once: 30 samples, of which up to two refreshes replace a fifth."""
    folder, cached = tmp_path_factory.mktemp("refreshed"), {}
    kept_links = {pair for pair in links(1, OLD, 110) if set(pair) <= set(NEW)}
    days = [
        (links(1, OLD, 110), OLD),
        (kept_links | links(2, NEW, 40), NEW),
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
        if key not in cached:
            path = folder / "-".join(map(str, key))
            options = {"measure": measure, "direction": direction}
            options |= {"layout": "trees"} if measure == "compact-simrank" else {}
            cached[key] = refresh_through(stored[: refreshes + 1], path, 0.2, 30, **options)
        return cached[key]

    return get


def values(case: Case, a: str, b: str, decay: float = DECAY) -> list[float]:
    return exact.values(case.samples, a, b, decay, case.directions, case.step)


def value_range(case: Case) -> tuple[float, float, float]:
    """The smallest value, that of a meeting beyond the walk length, and the largest value."""
    if case.step == "rings":
        return 0, 0, DECAY - DECAY ** (LENGTH + 1)
    return 0, DECAY ** (LENGTH + 1), DECAY


def upper_values(case: Case, a: str, b: str, samples: list[Sample] | None = None) -> list[float]:
    """Upper bounds of the values: walks that did not meet might have met later."""
    directions, beyond = case.directions, value_range(case)[1]
    per_direction = [
        exact.values(
            case.samples if samples is None else samples, a, b, DECAY, [direction], case.step
        )
        for direction in directions
    ]
    return [
        sum(x or beyond for x in xs) / len(directions) for xs in zip(*per_direction, strict=True)
    ]


def wealth_of(case: Case, samples: int) -> Wealth:
    """Betting uses equal stakes for samples of several graphs."""
    newest = len(case.index.stored.freshness.newest)
    return betting.most_wealth if samples <= newest else betting.mixed_wealth


def check_scores(case: Case, names: list[str]) -> None:
    """Check pairs, lists, errors and intervals of ``names`` with all nodes."""
    index, span = case.index, value_range(case)
    largest = span[2]
    for a in names:
        hits = {hit.node: hit for hit in index.related(a, ALL, decay=DECAY)}
        for b in index.nodes:
            found = index.similarity(a, b, decay=DECAY)
            if a == b:
                assert found.score == pytest.approx(1 if case.step != "rings" else largest)
                continue
            samples = values(case, a, b)
            assert found.score == pytest.approx(exact.mean(samples), abs=2e-12)
            if len(case.directions) == 1:  # with both, their variances are added
                error = exact.stderr(samples)
                assert found.stderr == pytest.approx(error, abs=1e-7, nan_ok=True)
            if a == names[0]:
                upper = upper_values(case, a, b)
                wealth = wealth_of(case, len(samples))
                low, high = betting.interval(samples, upper, span, 0.95, wealth)
                assert max(0, low - STEP) <= found.low <= low + 1e-9
                assert high - 1e-9 <= found.high <= min(largest, high + STEP) + 1e-9
            assert (b in hits) == (found.score > 0)
            if b in hits:
                assert equal_scores(hits[b][1:], found)
        ranks = [(-hit.score, order(index.nodes.id(hit.node))) for hit in hits.values()]
        assert ranks == sorted(ranks)


def equal_scores(first: Any, second: Any) -> bool:
    return all(
        a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(first, second, strict=True)
    )


@once_or_twice
def test_refreshed_scores_use_shared_samples(
    cases: Any, measure: str, direction: str, refreshes: int
) -> None:
    """The first refresh replaces p0 to p4 by a0 to a3 and z; the second brings them back."""
    case = cases(measure, direction, refreshes)
    assert sorted(case.index.nodes) == sorted(OLD if refreshes == 2 else NEW)
    counts = {len(values(case, a, b)) for a, b in itertools.combinations(case.index.nodes, 2)}
    assert counts == {6, 30}
    check_scores(case, ["p7", "p9", "p28"] + (["p0", "p4"] if refreshes == 2 else ["a1", "z"]))


@pytest.mark.long
@settings(max_examples=10)
@given(first=graphs(), second=graphs(), third=graphs(), share=st.sampled_from([0.1, 0.34, 0.5]))
def test_refreshed_scores_match_on_random_graphs(
    make_graph: MakeGraph,
    first: tuple[int, Edges],
    second: tuple[int, Edges],
    third: tuple[int, Edges],
    share: float,
) -> None:
    """First names are integers, then texts, where 10 sorts before 9."""
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


@once_or_twice
def test_related_all_on_refreshed_index_equals_related(
    cases: Any, tmp_path: Path, measure: str, direction: str, refreshes: int
) -> None:
    index = cases(measure, direction, refreshes).index
    for k in (1, 5, 100):
        check_batch(index, tmp_path / f"{k}", k)
    check_batch(index, tmp_path / "some", 5, exclude_prefix="p1", min_score=0.2)


def expected_certain_ranks(case: Case, a: str, hits: list[Hit], confidence: float) -> int:
    """Certain ranks by definition: pairs of hits over the samples that know all three nodes, and
    the last hit of a complete list by its own interval.
    """
    lowest, beyond, largest = value_range(case)
    for rank, (hit, next_hit) in enumerate(itertools.pairwise(hits)):
        shared = [s for s in case.samples if {a, hit.node, next_hit.node} <= s.knows]
        arguments = (case.directions, case.step)
        values_of_hit = exact.values(shared, a, hit.node, DECAY, *arguments)
        upper_of_next = upper_values(case, a, next_hit.node, shared)
        steps = [x - y for x, y in zip(values_of_hit, upper_of_next, strict=True)]
        if len(steps) < 2:
            return rank
        scaled = [(step - lowest + largest) / (2 * largest - lowest - beyond) for step in steps]
        wealth = wealth_of(case, len(steps))
        end = betting.lower_end(scaled, 2 / (1 - confidence), wealth)
        if end * (2 * largest - lowest - beyond) + lowest - largest <= 0:
            return rank
    return len(hits) - (bool(hits) and hits[-1].low <= 0)


@all_cases
def test_certain_ranks_of_refreshed_use_shared_samples(
    cases: Any, measure: str, direction: str
) -> None:
    case = cases(measure, direction, 1)
    for node in ("p7", "p9", "a1", "z"):
        for confidence in (0.95, 0.01):
            all_hits = case.index.related(node, ALL, confidence=confidence, decay=DECAY)
            expected = expected_certain_ranks(case, node, all_hits, confidence)
            for k in (1, 8, ALL):
                hits = case.index.related(node, k, confidence=confidence, decay=DECAY)
                assert hits.certain_ranks == min(expected, k)


# -- why -------------------------------------------------------------------------------


@all_cases
def test_why_on_refreshed_index_uses_graph_of_each_sample(
    cases: Any, monkeypatch: pytest.MonkeyPatch, measure: str, direction: str
) -> None:
    monkeypatch.setattr(source, "_there", lambda stored, recorded: None)
    case, rings = cases(measure, direction, 1), measure == "xjaccard"
    index, old_pages, old_shares = case.index, 0, 0.0
    for a, b in [("p7", "p9"), ("p7", "a1"), ("z", "a0"), *itertools.combinations(OLD[8:16], 2)]:
        shares = [
            exact.reasons(case.samples, a, b, DECAY, side, case.step) for side in case.directions
        ]
        found = index.why(a, b, ALL, graph=case.graphs, decay=DECAY)
        assert found.score == index.similarity(a, b, decay=DECAY).score
        total = sum(reason.contribution for reason in found.reasons) + found.unattributed
        assert total == pytest.approx(found.score, abs=1e-9)
        weight, names = len(case.directions), set(index.nodes)
        missing = sum(share for side in shares for page, share in side.items() if page not in names)
        assert found.unattributed == pytest.approx(rings * missing / weight, abs=1e-9)
        for side, expected in zip(case.directions, shares, strict=True):
            pages = {r.node: r.contribution for r in found.reasons if r.links == side}
            expected_pages = {p: s / weight for p, s in expected.items() if not rings or p in names}
            assert pages == pytest.approx(expected_pages, abs=1e-9)
            old_pages += sum(page not in names for page in expected)
        for reason in () if rings else found.reasons:
            assert (reason.path_a[0], reason.path_b[0]) == (a, b)
            assert reason.path_a[-1] == reason.path_b[-1] == reason.node
        if not rings:
            newest = index.why(a, b, ALL, graph=case.graphs[1], decay=DECAY)
            total = sum(reason.contribution for reason in newest.reasons) + newest.unattributed
            assert total == pytest.approx(newest.score, abs=1e-9)
            assert {r.node for r in newest.reasons} <= names
            old_shares += newest.unattributed
    assert old_pages > 0
    assert old_shares > 0 or rings


def test_why_on_refreshed_index_rejects_foreign_graph(
    cases: Any, make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = cases("psimrank", "in", 1)
    with pytest.raises(UsageError, match=r"\(g1 or g0\): the checksums differ"):
        case.index.why("p7", "p9", graph=[case.graphs[0], make_graph([("a", "b")])])
    hits = case.index.related("p7", 1)
    # By default graphs are found where they were; without any, nothing is attributed.
    full = case.index.why("p7", hits[0].node, graph=case.graphs)
    assert case.index.why("p7", hits[0].node) == full
    assert full.unattributed == 0
    monkeypatch.setattr(source, "_there", lambda stored, recorded: None)
    assert case.index.why("p7", hits[0].node) == Why(hits[0].score, [], 0, 0.0, hits[0].score)
    reason = case.index.why("z", "z").reasons[0]
    assert (reason.contribution, reason.samples) == (1, 6)


def test_with_samples_rejects_refreshed_index(cases: Any) -> None:
    with pytest.raises(UsageError, match=r"was refreshed: its samples come from 2 graphs"):
        cases("psimrank", "in", 1).index.with_samples(5)


# -- refined answers -------------------------------------------------------------------


@pytest.mark.long
def test_refine_on_refreshed_index_uses_newest_graph(
    cases: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refinement starts with its 6 samples, 30 to 35, and doubles their number each round."""
    monkeypatch.setattr("cocite.search.refine.candidates.MOST_SAMPLES", 256)
    case, refined = cases("psimrank", "in", 1), 0
    options: dict[str, Any] = {"samples": 30 + 6 * 256, "length": LENGTH, "seed": SEED}
    full = cocite.build(case.graphs[1], **with_psimrank(options))
    for a, b in [("p7", "p9"), ("z", "a0"), ("p7", "a1"), ("p12", "p28")]:
        found = case.index.similarity(a, b, decay=DECAY, refine=True, target_error=0.05)
        times = full.scorer.readers[0].meeting_times(*full.nodes.ids([a, b]).tolist())  # type: ignore[attr-defined]
        values = np.where(times < 16, DECAY ** times.astype(float), 0.0)
        counts = [min(6 * 2**k, 256) for k in range(7)]
        means = [values[30 : 30 + count].mean() for count in counts]
        assert min(abs(mean - found.score) for mean in means) < 2e-12
        refined += abs(means[0] - found.score) > 1e-9
        truth = values.mean()
        assert found.low - 0.05 <= truth <= found.high + 0.05
    assert refined > 0


def test_refresh_rebuilds_refine_data_for_newest_graph(cases: Any, tmp_path: Path) -> None:
    graphs = cases("simrank", "in", 1).graphs
    cocite.build(graphs[0], tmp_path / "x", measure="simrank", samples=10, refine=True)
    index = cocite.refresh(tmp_path / "x", graphs[1], fraction=0.5, force=True)
    rebuilt = cocite.build(graphs[1], measure="simrank", samples=10, refine=True)
    assert index.stored.refined == rebuilt.stored.refined
    for node in ("p7", "z", "a1"):
        assert index.related(node, 5, refine=True) == rebuilt.related(node, 5, refine=True)


# -- blends ----------------------------------------------------------------------------


def test_refreshed_blend_computes_exact_parts_on_newest_graph(cases: Any, tmp_path: Path) -> None:
    """Walks use both graphs, cocitation uses the newer one."""
    graphs = cases("psimrank", "in", 1).graphs
    blend = "blend:0.75*psimrank+0.25*cocitation"
    options: dict[str, Any] = {"samples": 30, "length": LENGTH, "seed": SEED}
    cocite.build(graphs[0], tmp_path / "x", measure=blend, **options)
    index = cocite.refresh(tmp_path / "x", graphs[1], fraction=0.2, force=True)
    walks = cases("psimrank", "in", 1)
    cocitation = cocite.build(graphs[1], measure="cocitation")
    for a in ("p7", "p9", "a1", "z"):
        hits = index.related(a, ALL)
        all_hits = [Hit(b, *index.similarity(a, b)) for b in index.nodes if b != a]
        ranked = sorted(all_hits, key=lambda hit: (-hit.score, order(index.nodes.id(hit.node))))
        assert [hit.node for hit in hits] == [hit.node for hit in ranked if hit.score > 0]
        assert all(equal_scores(hit[1:], index.similarity(a, hit.node)) for hit in hits)
        for b in index.nodes:
            if a != b:
                walk, common = walks.index.similarity(a, b), cocitation.similarity(a, b)
                expected = 0.75 * walk.score + 0.25 * common.score
                assert index.similarity(a, b).score == pytest.approx(expected, abs=2e-12)
                assert index.similarity(a, b).stderr == pytest.approx(0.75 * walk.stderr, abs=1e-9)
        found = index.why(a, hits[0].node, ALL, graph=graphs)
        assert found.score == hits[0].score
        assert sum(r.contribution for r in found.reasons) == pytest.approx(found.score, abs=1e-9)
        assert 0 <= hits.certain_ranks <= len(hits)


# -- coverage of intervals -------------------------------------------------------------


def test_around_covers_mean_of_mixed_distributions() -> None:
    """Values whose mean changes, as between graphs, still have the nominal coverage."""
    rng = np.random.default_rng(2)
    means = np.repeat([0.1, 0.3, 0.5], [50, 30, 20])
    values = 0.6 * (rng.random((4000, 100)) < means / 0.6)
    draws = Draws(*(np.ascontiguousarray(values.T),) * 2, Span(0.0, 0.0, 0.6), alike=0)
    for bound in INTERVALS:
        found, below, above = around(draws, 0.95, bound)
        covered = (found - below <= means.mean()) & (means.mean() <= found + above)
        assert covered.mean() >= 0.95
    errors = values.std(axis=1, ddof=1) / 10
    assert errors.mean() >= values.mean(axis=1).std()  # conservative
