"""Tuning: equal seeds give equal choices, interrupted or not; budgets, labels, weights, files."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import InputError, OutputExists, UsageError
from cocite.evaluation import Interval
from cocite.evaluation.points import Point, point
from cocite.evaluation.trials import decided
from cocite.evaluation.tune import Tuning
from tests.conftest import MakeGraph, Shell

QUICK: dict[str, Any] = {"measures": ["fusion", "cocitation", "psimrank"], "samples": 8}
QUICKEST: dict[str, Any] = {"measures": ["cocitation"], "directions": ["in"], "threads": 1}
Quick = tuple[cocite.TuningResult, Path]


def blocks(seed: int = 0, size: int = 12, groups: int = 4) -> Iterator[tuple[str, str]]:
    """Pages in groups, most links within them."""
    rng = np.random.default_rng(seed)
    for a in range(size * groups):
        for b in range(size * groups):
            if a != b and rng.random() < (0.4 if a // size == b // size else 0.02):
                yield f"p{a:02}", f"p{b:02}"


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> Graph:
    return module_graph(blocks())


@pytest.fixture(scope="module")
def quick(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Quick:
    """A result by the quick options, and its settings file."""
    path = tmp_path_factory.mktemp("quick") / "whole.toml"
    return cocite.tune(graph, path, threads=1, **QUICK), path


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.tsv"
    path.write_text("".join(f"p{a:02}\tgroup{a // 12}\n" for a in range(48)))
    return path


def outcome(found: cocite.TuningResult) -> dict[str, Any]:
    """The result without times."""
    described = found.to_json()
    del described["date"]
    for each in described["tried"]:
        del each["seconds"], each["question"]
    return described


@pytest.mark.long
def test_tune_is_deterministic_across_threads(graph: Graph, quick: Quick) -> None:
    one, two = quick[0], cocite.tune(graph, threads=2, memory="500MB", **QUICK)
    assert outcome(one) == outcome(two)
    assert one.settings == two.settings
    seeds = [cocite.tune(graph, seed=seed, **QUICKEST) for seed in (0, 1)]
    assert outcome(seeds[0]) != outcome(seeds[1])


@pytest.mark.long
def test_tune_choice_follows_from_rounds(graph: Graph, quick: Quick) -> None:
    found, _ = quick
    assert {each.round for each in found.tried} == {1, 2, 3}
    last = [each for each in found.tried if each.round == 3]
    assert all((each.behind is not None) == (each in last) for each in found.tried)
    top = max(last, key=lambda each: each.figure.value)
    tied = [e for e in last if e.behind is not None and not e.behind.low > 0]
    assert found.best in tied
    assert top in tied
    default = next(each for each in last if each.name == "fusion both")
    assert found.best == default or default not in tied
    if found.best != default:
        assert found.best.bytes == min(each.bytes for each in tied)
        assert "above the default on the held-out pages" in found.reason
    best = cocite.tune(graph, best=True, **QUICK)
    assert best.best.name == top.name
    assert best.reason == "the best on the selection pages, as requested"
    assert found.by == "coneighbors@10"
    assert found.hidden
    assert found.labels is None
    assert found.chosen_by + found.judged_by <= graph.nodes
    assert {e.samples for e in found.tried if e.measure == "psimrank"} <= {2, 4, 8}


@pytest.mark.long
def test_tune_tries_row_sizes(graph: Graph) -> None:
    found = cocite.tune(graph, measures=["fusion", "ppr-pmi"], directions=["both", "any"])
    tried = {(each.measure, each.settings["size"]) for each in found.tried}
    assert tried == {(m, s) for m in ("fusion", "ppr-pmi") for s in ("small", "default", "large")}


def test_decided_leaves_default_only_for_held_out_gain() -> None:
    fusion, cocitation, ppr = (
        point(name, direction, {})
        for name, direction in (("fusion", "both"), ("cocitation", "in"), ("ppr", "out"))
    )
    sizes = {fusion: 5, cocitation: 9, ppr: 3}
    ahead, uncertain = Interval(0.2, 0.1, 0.3), Interval(0.2, -0.1, 0.5)

    def chosen(
        among: list[Point], held: dict[Point, Interval], default: Any = fusion, margin: float = 0
    ) -> Any:
        return decided(cocitation, among, default, sizes, held, margin)

    assert chosen([cocitation, fusion], {}) == (
        fusion,
        "the default is as good as the best, cocitation in",
    )
    found, reason = chosen([cocitation], {cocitation: ahead})
    assert found == cocitation
    assert reason.endswith("; +0.2000 [+0.1000, +0.3000] above the default on the held-out pages")
    found, reason = chosen([cocitation], {cocitation: uncertain})
    assert found == fusion
    assert reason.startswith("the default remains: on the held-out pages, cocitation in")
    assert "(+0.2000 [-0.1000, +0.5000] above it)" in reason
    assert chosen([cocitation], {cocitation: ahead}, margin=0.09)[0] == cocitation
    found, reason = chosen([cocitation], {cocitation: ahead}, margin=0.1)
    assert found == fusion
    assert "cocitation in is not significantly better by a fifth, 0.1000 (+0.2000" in reason
    assert chosen([cocitation, ppr], {cocitation: uncertain, ppr: ahead})[0] == ppr  # the smallest
    assert chosen([cocitation, ppr], {cocitation: ahead, ppr: uncertain})[0] == fusion
    assert chosen([cocitation], {}) == (
        fusion,
        "the default remains: no pages are held out to evaluate cocitation in",
    )
    assert chosen([cocitation], {}, None) == (cocitation, "significantly better than all others")


def test_tune_notes_small_selection(make_graph: MakeGraph) -> None:
    tiny = make_graph(blocks(size=4))
    found = cocite.tune(tiny, measures=["fusion", "cocitation"], directions=["in", "both"])
    assert found.chosen_by <= 8
    assert found.best.name == "fusion both"
    (note,) = (note for note in found.notes if "is based on" in note)
    assert note.startswith(
        f"the choice is based on {found.chosen_by} pages, and evaluated on {found.judged_by} oth"
    )
    assert "--queries 0" in note


class Stopped(KeyboardInterrupt):
    """Like Ctrl-C."""


@pytest.mark.long
def test_tune_resumes_interrupted_run(
    graph: Graph, quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, settings = quick
    tried: list[tuple[int, Point]] = []
    original = Tuning._try

    def counted(self: Tuning, turn: int, points: list[Point], judge: Any) -> None:
        if len(tried) >= stop:
            raise Stopped
        tried.extend((turn, each) for each in points)
        original(self, turn, points, judge)

    monkeypatch.setattr(Tuning, "_try", counted)
    output = tmp_path / "cut.toml"
    for stop in (2, 5, 9):
        with pytest.raises(KeyboardInterrupt) as caught:
            cocite.tune(graph, output, **QUICK)
        assert "repeat the command to continue" in caught.value.__notes__[0]
        assert len(tried) >= stop
        assert not output.exists()
    with pytest.raises(
        UsageError,
        match=r"unfinished tuning with other settings: samples: \d+, here 9\. .*--no-resume",
    ):
        cocite.tune(graph, output, **(QUICK | {"samples": 9}))
    stop = 10**6
    found = cocite.tune(graph, output, threads=1, **QUICK)
    assert outcome(found) == outcome(whole)
    assert output.read_bytes() == settings.read_bytes()
    assert not (tmp_path / "cut.toml.building").exists()
    assert len(set(tried)) == len(tried) > 9  # no candidate is tried twice in a round


def test_tune_time_limit_skips_candidates(graph: Graph, quick: Quick) -> None:
    found = cocite.tune(graph, time=0.001, **QUICK)
    assert found.best.name == "fusion both"
    message = (
        r"round 1 of 3 must end at 40% of the time limit, .* of 0.0 s: (\d+) of its (\d+) "
        "candidates are"
    )
    assert re.match(message, found.notes[0])
    assert "allow more time with --time" in found.notes[0]
    assert len(found.tried) < len(quick[0].tried)


def test_tune_labels_use_requested_figure(graph: Graph, labels: Path) -> None:
    found = cocite.tune(graph, labels=labels, figure="precision@5", **QUICKEST)
    assert (found.by, found.labels, found.hidden) == ("precision@5", "labels.tsv", None)
    assert (found.chosen_by, found.judged_by) == (24, 24)
    assert found.best.judged is not None
    assert found.best.judged.value > 0.5
    assert cocite.tune(graph, labels=labels, **QUICKEST).by == "precision@10"
    with pytest.raises(UsageError, match=r"'coneighbors@50'; choose one of: hits, answered"):
        cocite.tune(graph, labels=labels, figure="coneighbors@50", **QUICK)


@pytest.mark.long
def test_tune_skips_measures_without_weights(make_graph: MakeGraph) -> None:
    rng = np.random.default_rng(0)
    graph = make_graph([(a, b, rng.integers(1, 5)) for a, b in blocks()], weight_column=3)
    found = cocite.tune(graph, measures=["psimrank", "cocitation"], samples=8)
    assert {each.measure for each in found.tried} == {"psimrank"}
    assert any("cocitation is left out" in note for note in found.notes)
    found = cocite.tune(graph, unweighted=True, **QUICKEST)
    assert found.settings.unweighted
    assert found.best.measure == "cocitation"
    with pytest.raises(
        UsageError, match="there are no candidates left to try: cocitation is left out"
    ):
        cocite.tune(graph, measures=["cocitation"])


def test_tune_handles_undirected_graph(make_graph: MakeGraph) -> None:
    graph = make_graph(blocks(size=6), undirected=True)
    found = cocite.tune(graph, **QUICKEST)
    assert found.hidden is not None
    assert found.hidden % 2 == 0
    assert found.hidden > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"fraction": 0}, "fraction is 0.0; it must be a number above 0, at most 0.5"),
        ({"fraction": 0.6}, "fraction is 0.6"),
        ({"queries": -1}, "queries is -1; it must be a whole number, 0 or more"),
        ({"samples": 0}, "samples is 0; it must be a whole number, 1 or more"),
        (
            {"figure": "precision@10"},
            "figure is 'precision@10'; without labels, it must be one of answered, coneighbors@10",
        ),
        ({"measures": ["pagerank"]}, "no measure is called 'pagerank'"),
        ({"directions": ["up"]}, "direction is 'up'"),
        ({"time": "soon"}, "'soon' is not a time"),
    ],
)
def test_tune_refuses_invalid_options(graph: Graph, given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        cocite.tune(graph, **given)


def test_tune_reports_nothing_to_hide_and_file_errors(
    make_graph: MakeGraph, graph: Graph, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="can be hidden"):
        cocite.tune(make_graph([("a", "b"), ("c", "d")]), tmp_path / "x.toml")
    with pytest.raises(InputError, match="cannot be read"):
        cocite.tune(graph, labels=tmp_path / "nowhere.tsv")
    (tmp_path / "existing.toml").write_text("existing")
    with pytest.raises(OutputExists):
        cocite.tune(graph, tmp_path / "existing.toml", **QUICK)


def test_tune_command_writes_settings(graph: Graph, tmp_path: Path, shell: Shell) -> None:
    output = tmp_path / "settings.toml"
    arguments = ["tune", str(graph.path), "--samples", "8", "--measure", "psimrank"]
    command = [*arguments, "--direction", "both", "-o", str(output)]
    result = json.loads(shell([*command, "--format", "json"]).out)
    assert result["settings"]["measure"] == "psimrank"
    assert result["best"].startswith("psimrank both")
    assert output.read_text().startswith("# Chosen by cocite tune on 2")
    index = str(tmp_path / "index")
    shell(["index", str(graph.path), "--settings", str(output), "-o", index])
    built = cocite.open(index)
    assert (built.measure, built.direction, built.samples) == ("psimrank", "both", 8)
    assert "exists" in shell(command, 1).err
    titles, *rows = shell([*arguments, "--format", "csv"]).out.strip().split("\n")
    assert titles.startswith("name,measure,direction,settings,round,figure,low,high,judged")
    assert len(rows) > 4
    printed = shell(arguments).out
    assert "coneighbors@10" in printed
    assert "\nchosen " in printed
    assert "links were hidden" in printed
