"""Plans: numbers of the theorems, predictions against actual builds, errors."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import ResourceError, UsageError
from cocite.index.build import IndexBuild
from cocite.index.parts import ShardedPart
from cocite.index.plan import BuildOptions
from cocite.resources import Resources
from cocite.search.intervals import half_width
from cocite.search.plan import PROMISES, Costs, parse_time, promises, standard_error
from tests.conftest import MakeGraph, with_psimrank


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(4)
    return module_graph([(f"p{a}", f"p{b}") for a, b in rng.integers(0, 400, (2500, 2)).tolist()])


@pytest.mark.parametrize(
    ("delta", "failure", "needs"),
    [
        # ln 200 = 5.2983174, ln 100 = 4.6051702; 7/6 * 5.2983174 / 0.0025 = 2472.55,
        # 4.6051702 / 0.3 / 0.0025 = 6140.23, 7/6 * 4.6051702 / 0.0025 = 2149.08;
        # of 1,011 nodes for 10 listed r is 100: ln 10001 = 9.2104404, 4298.21
        (0.05, 0.01, {"error": 2473, "order": 6141, "recall": 2150, "precision": 4299}),
        # ln 40 = 3.6888795, ln 20 = 2.9957323; 430.37, 998.58, 349.50; ln 2001 = 7.6014023, 886.83
        (0.1, 0.05, {"error": 431, "order": 999, "recall": 350, "precision": 887}),
    ],
)
def test_promise_samples_follow_theorems(
    delta: float, failure: float, needs: dict[str, int]
) -> None:
    by_name = promises(1011, 10)
    assert {name: promise.samples(delta, failure) for name, promise in by_name.items()} == needs
    for name, samples in needs.items():
        assert by_name[name].delta(samples, failure) <= delta
        assert by_name[name].delta(samples - 1, failure) > delta


def test_promise_error_equals_hoeffding_half_width() -> None:
    for samples in (10, 100, 5000):
        width = half_width(np.zeros(1), samples, 1.0, 0.99, "hoeffding")[0]
        assert PROMISES["error"].delta(samples, 0.01) == pytest.approx(width)


def test_promise_bound_covers_exact_binomial_tail() -> None:
    """The mean of equally likely 0s and 1s has an exact tail below the bound."""
    for samples, delta in ((40, 0.2), (200, 0.1)):
        counts = [math.comb(samples, k) for k in range(samples + 1)]
        tail = sum(n for k, n in enumerate(counts) if abs(k / samples - 0.5) > delta + 1e-12)
        exact = tail / 2**samples
        bound = 2 * math.exp(-PROMISES["error"].rate * samples * delta**2)
        assert 0 < exact < bound
        assert PROMISES["error"].delta(samples, bound) == pytest.approx(delta)


def test_standard_error_equals_binomial_formula() -> None:
    decay, score, samples = 0.6, 0.3, 50
    chance = score / decay
    exact = math.sqrt(chance * (1 - chance) * decay**2 / samples)
    assert standard_error(score, decay, samples) == pytest.approx(exact)
    assert standard_error(score, decay, 4 * samples) == pytest.approx(exact / 2)
    assert standard_error(0.7, decay, samples) == 0


@pytest.mark.parametrize("direction", ["in", "out", "both"])
@pytest.mark.parametrize(
    ("measure", "layout"),
    [("psimrank", "trees"), ("simrank", "paths"), ("compact-simrank", "compact")],
)
def test_plan_index_predicts_build_size_and_memory(
    graph: Graph, tmp_path: Path, measure: str, layout: str, direction: str
) -> None:
    kind: dict[str, Any] = {"measure": measure, "layout": layout, "direction": direction}
    plan = cocite.plan_index(graph, **with_psimrank(kind), samples=90, seed=3)
    options = BuildOptions.checked(measure, direction, layout, {"samples": 90, "seed": 3})
    with IndexBuild(graph, tmp_path / "x", options, Resources.checked()) as build:
        build.estimate()
        rooms = [str(part.fit) for part in build.parts]
        report = build.run()
    assert plan.settings == options.settings.to_json()
    assert abs(plan.planned.bytes / report.bytes - 1) < 0.02  # the samples differ
    assert plan.room in rooms
    assert plan.doubled is not None
    assert plan.doubled.samples == 180
    # Names keep their size.
    assert plan.doubled.bytes == pytest.approx(2 * plan.planned.bytes, rel=0.2)


def test_plan_index_is_exact_for_few_samples(graph: Graph, tmp_path: Path) -> None:
    plan = cocite.plan_index(graph, samples=4, threads=2, measure="psimrank")
    cocite.build(graph, tmp_path / "x", samples=4, threads=2, measure="psimrank")
    files = [file.stat().st_size for file in (tmp_path / "x").iterdir()]
    size = sum(files) - (tmp_path / "x" / "manifest.json").stat().st_size
    assert plan.planned.bytes == pytest.approx(size, abs=12 * 4)  # 12 bytes per sample are reserved


@pytest.mark.parametrize("measure", ["cocitation", "ppr", "pagesim", "snn"])
def test_plan_index_sizes_measures_without_samples(graph: Graph, measure: str) -> None:
    plan = cocite.plan_index(graph, measure=measure)
    index = cocite.build(graph, measure=measure)
    assert plan.planned.samples is None
    assert plan.doubled is None
    assert plan.planned.bytes == pytest.approx(index.stored.store.nbytes, rel=0.2)


def test_plan_delta_meets_one_or_all_promises(graph: Graph) -> None:
    ratio = (graph.nodes - 1 - 150) / 150
    precision = math.ceil(math.log(1 + ratio / 0.05) * 7 / 6 * 100)
    expected = (("error", 431), ("order", 999), ("recall", 350), ("precision", precision))
    for promise, samples in ((None, 999), *expected):
        plan = cocite.plan_index(
            graph, delta=0.1, failure=0.05, guarantee=promise, listed=150, measure="psimrank"
        )
        assert plan.planned.samples == plan.settings["samples"] == samples
        assert plan.needs == dict(expected)
        assert plan.listed == 150
        checked = [promise] if promise else list(PROMISES)
        assert all(plan.planned.delta[name] <= 0.1 for name in checked)


def test_plan_disk_limits_index_size(graph: Graph) -> None:
    plan = cocite.plan_index(graph, disk="300kB", measure="psimrank")
    assert plan.planned.samples is not None
    assert 0.97 < plan.planned.bytes / 300_000 <= 1
    index = cocite.build(graph, samples=plan.planned.samples, measure="psimrank")
    assert index.stored.store.nbytes == pytest.approx(300_000, rel=0.05)


def test_costs_limit_samples_by_time_and_disk() -> None:
    costs = Costs(1000, 40.0, 0.5, None)  # type: ignore[arg-type]
    assert costs.within_seconds(10.1) == 20
    assert costs.within_bytes(1850) == 21
    assert costs.bytes(21) == 1840
    assert costs.within_seconds(1e9) == 65_535  # the maximum of an index
    with pytest.raises(
        UsageError, match=r"no sample can be drawn in 0\.4 s: a sample takes about 0\.5"
    ):
        costs.within_seconds(0.4)
    with pytest.raises(
        UsageError, match=r"no sample fits in 1\.01 kB of disk space: a sample takes 40 B"
    ):
        costs.within_bytes(1010)


def test_plan_stderr_uses_query_settings(graph: Graph) -> None:
    plan = cocite.plan_index(graph, samples=25, decay=0.8, measure="psimrank")
    assert plan.planned.stderr[0.1] == pytest.approx(standard_error(0.1, 0.8, 25))
    assert plan.asked == {"decay": 0.8}
    assert str(plan).endswith("a standard error of at most 0.053 for a score of 0.1")


def test_plan_blend_uses_component_settings(graph: Graph) -> None:
    """Even if no decay is left to choose, and the first component has no samples."""
    measure = "blend:cocitation+psimrank(decay=0.8)"
    plan = cocite.plan_index(graph, measure=measure, samples=25)
    assert (plan.planned.samples, plan.asked) == (25, {"form": "cosine", "idf": False})
    assert plan.planned.stderr[0.1] == pytest.approx(standard_error(0.1, 0.8, 25))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0.1, "disk": "1GB"}, "delta and disk exclude each other: pass one of them"),
        ({"samples": 5, "time": 3}, "samples and time exclude each other"),
        ({"delta": 0}, "delta is 0; it must be a number above 0 and below 1"),
        ({"delta": 0.1, "failure": 1}, "failure is 1; it must be a number above 0 and below 1"),
        (
            {"delta": 0.1, "guarantee": "luck"},
            "guarantee is 'luck'; it must be error or order or recall or prec",
        ),
        ({"listed": 0}, "listed is 0; it must be a whole number, 1 or more"),
        ({"listed": 400}, "listed is 400; it must be below 400, the number of nodes"),
        ({"guarantee": "order"}, "a guarantee needs delta"),
        (
            {"delta": 0.001},
            r"needs 15,350,568 samples, .* has at most 65,535.*enough for a delta of 0.0154",
        ),
        ({"disk": "1kB"}, "no sample fits in 1 kB of disk"),
        ({"time": "soon"}, "'soon' is not a time; write a time like 90s, 10min or 2h"),
        ({"time": "0s"}, "'0s' is not a time"),
        ({"samples": 0}, "samples is 0"),
        ({"decay": 2}, "decay is 2"),
        ({"radius": 2}, "psimrank has no build setting 'radius'"),
        ({"measure": "ppr", "delta": 0.1}, "ppr has no samples, so delta cannot choose"),
        ({"measure": "pagesim", "disk": "1GB"}, "pagesim has no samples, so disk cannot choose"),
        ({"measure": "blend:psimrank(samples=9)+ppr"}, "contains a number of samples, but"),
        ({"measure": "cocitation", "samples": 10}, "cocitation has no build setting 'samples'"),
    ],
)
def test_plan_index_rejects_invalid_options(
    graph: Graph, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        cocite.plan_index(graph, **with_psimrank(options))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("10min", 600), ("2h", 7200), ("1.5 h", 5400), (7, 7)]
)
def test_parse_time_reads_units(text: str | float, seconds: float) -> None:
    assert parse_time(text) == seconds


def test_plan_index_leaves_no_files(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    cocite.plan_index(graph, samples=4, scratch=folder, measure="psimrank")
    assert not list(folder.iterdir())

    def stop(*args: object) -> None:
        assert list(folder.iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr(ShardedPart, "estimate", stop)
    with pytest.raises(KeyboardInterrupt) as stopped:
        cocite.plan_index(graph, samples=4, scratch=folder, measure="psimrank")
    assert not getattr(stopped.value, "__notes__", [])  # nothing to resume
    assert not list(folder.iterdir())
    with pytest.raises(ResourceError, match=r"cannot create a temporary directory.*--scratch"):
        cocite.plan_index(graph, samples=4, scratch=tmp_path / "nowhere", measure="psimrank")
