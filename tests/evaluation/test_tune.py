"""Tuning: the same seed chooses the same, interrupted or not; budgets, labels, weights, files."""

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

FEW: dict[str, Any] = {"measures": ["fusion", "cocitation", "psimrank"], "samples": 8}


def blocks(seed: int = 0, size: int = 12, groups: int = 4) -> Iterator[tuple[str, str]]:
    """Pages in groups, most links within them."""
    rng = np.random.default_rng(seed)
    for a in range(size * groups):
        for b in range(size * groups):
            if a != b and rng.random() < (0.4 if a // size == b // size else 0.02):
                yield f"p{a:02}", f"p{b:02}"


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    return make_graph(blocks())


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.tsv"
    path.write_text("".join(f"p{a:02}\tgroup{a // 12}\n" for a in range(48)))
    return path


def outcome(found: cocite.TuningResult) -> dict[str, Any]:
    """What it says, without times."""
    told = found.to_json()
    del told["date"]
    for each in told["tried"]:
        del each["seconds"], each["question"]
    return told


def test_equal_seeds_choose_alike_whatever_the_threads(graph: Graph) -> None:
    one = cocite.tune(graph, threads=1, **FEW)
    two = cocite.tune(graph, threads=2, memory="500MB", **FEW)
    assert outcome(one) == outcome(two)
    assert one.settings == two.settings
    assert outcome(one) != outcome(cocite.tune(graph, seed=1, **FEW))


def test_what_is_chosen_follows_from_the_rounds(graph: Graph) -> None:
    found = cocite.tune(graph, **FEW)
    assert {each.round for each in found.tried} == {1, 2, 3} or len(found.tried) > 6
    last = [each for each in found.tried if each.round == 3]
    assert all((each.behind is not None) == (each in last) for each in found.tried)
    top = max(last, key=lambda each: each.figure.value)
    level = [e for e in last if e.behind is not None and not e.behind.low > 0]
    assert found.best in level
    assert top in level
    usual = next(each for each in last if each.name == "fusion both")
    assert found.best == usual or usual not in level
    if found.best != usual:
        assert found.best.bytes == min(each.bytes for each in level)
        assert "above the default on the held-out pages" in found.reason
    best = cocite.tune(graph, best=True, **FEW)
    assert best.best.name == top.name
    assert best.reason == "the best on the selection pages, as requested"
    assert found.by == "coneighbors@10"
    assert found.hidden
    assert found.labels is None
    assert found.chosen_by + found.judged_by <= graph.nodes
    assert {e.samples for e in found.tried if e.measure == "psimrank"} <= {2, 4, 8}


def test_sizes_of_rows_are_tried(graph: Graph) -> None:
    found = cocite.tune(graph, measures=["fusion", "ppr-pmi"], directions=["both", "any"])
    tried = {(each.measure, each.settings["size"]) for each in found.tried}
    assert tried == {(m, s) for m in ("fusion", "ppr-pmi") for s in ("small", "default", "large")}


def test_the_default_is_left_only_for_what_is_ahead_of_it_on_other_pages_too() -> None:
    usual, other, third = (
        point(name, direction, {})
        for name, direction in (("fusion", "both"), ("cocitation", "in"), ("ppr", "out"))
    )
    sizes = {usual: 5, other: 9, third: 3}
    ahead, level = Interval(0.2, 0.1, 0.3), Interval(0.2, -0.1, 0.5)

    def chosen(
        among: list[Point], held: dict[Point, Interval], default: Any = usual, margin: float = 0
    ) -> Any:
        return decided(other, among, default, sizes, held, margin)

    assert chosen([other, usual], {}) == (
        usual,
        "the default is as good as the best, cocitation in",
    )
    found, reason = chosen([other], {other: ahead})
    assert found == other
    assert reason.endswith("; +0.2000 [+0.1000, +0.3000] above the default on the held-out pages")
    found, reason = chosen([other], {other: level})
    assert found == usual
    assert reason.startswith("the default remains: on the held-out pages, cocitation in")
    assert "(+0.2000 [-0.1000, +0.5000] above it)" in reason
    assert chosen([other], {other: ahead}, margin=0.09)[0] == other
    found, reason = chosen([other], {other: ahead}, margin=0.1)
    assert found == usual
    assert "cocitation in is not significantly better by a fifth, 0.1000 (+0.2000" in reason
    assert chosen([other, third], {other: level, third: ahead})[0] == third  # the smallest
    assert chosen([other, third], {other: ahead, third: level})[0] == usual
    assert chosen([other], {}) == (
        usual,
        "the default remains: no pages are held out to evaluate cocitation in",
    )
    assert chosen([other], {}, None) == (other, "significantly better than all others")


def test_how_little_a_choice_rests_on_is_told(make_graph: MakeGraph) -> None:
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
    """As by Ctrl-C."""


def test_run_goes_on(graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cocite.tune(graph, tmp_path / "whole.toml", **FEW)
    tried: list[int] = []
    plain = Tuning._try

    def counted(self: Tuning, turn: int, *rest: Any) -> None:
        if len(tried) == stop:
            raise Stopped
        tried.append(turn)
        plain(self, turn, *rest)

    monkeypatch.setattr(Tuning, "_try", counted)
    output = tmp_path / "cut.toml"
    for stop in (2, 5, 9):
        with pytest.raises(KeyboardInterrupt) as caught:
            cocite.tune(graph, output, **FEW)
        assert "repeat the command to continue" in caught.value.__notes__[0]
        assert len(tried) == stop
        assert not output.exists()
    with pytest.raises(
        UsageError,
        match=r"unfinished tuning with other settings: samples: \d+, here 9\. .*--no-resume",
    ):
        cocite.tune(graph, output, **(FEW | {"samples": 9}))
    stop = 10**6
    found = cocite.tune(graph, output, threads=1, **FEW)
    assert outcome(found) == outcome(whole)
    named = (tmp_path / "whole.toml").read_bytes()
    assert output.read_bytes() == named
    assert not (tmp_path / "cut.toml.building").exists()
    before = len(tried)
    tried.clear()
    cocite.tune(graph, tmp_path / "again.toml", **FEW)
    assert len(tried) == before


def test_plan_without_time_is_left_out(graph: Graph) -> None:
    found = cocite.tune(graph, time=0.001, **FEW)
    assert found.best.name == "fusion both"
    said = (
        r"round 1 of 3 must end at 40% of the time limit, .* of 0.0 s: (\d+) of its (\d+) "
        "candidates are"
    )
    assert re.match(said, found.notes[0])
    assert "allow more with --time" in found.notes[0]
    assert len(found.tried) < len(cocite.tune(graph, **FEW).tried)


def test_labels_choose_by_the_figure_named(graph: Graph, labels: Path) -> None:
    found = cocite.tune(graph, labels=labels, figure="precision@5", **FEW)
    assert (found.by, found.labels, found.hidden) == ("precision@5", "labels.tsv", None)
    assert (found.chosen_by, found.judged_by) == (24, 24)
    assert found.best.judged is not None
    assert found.best.judged.value > 0.5
    assert cocite.tune(graph, labels=labels, **FEW).by == "precision@10"
    with pytest.raises(UsageError, match=r"'coneighbors@50'; choose one of: hits, answered"):
        cocite.tune(graph, labels=labels, figure="coneighbors@50", **FEW)


def test_measures_that_cannot_use_weights_are_left_out(make_graph: MakeGraph) -> None:
    rng = np.random.default_rng(0)
    graph = make_graph([(a, b, rng.integers(1, 5)) for a, b in blocks()], weight_column=3)
    found = cocite.tune(graph, measures=["psimrank", "cocitation"], samples=8)
    assert {each.measure for each in found.tried} == {"psimrank"}
    assert any("cocitation is left out" in note for note in found.notes)
    found = cocite.tune(graph, measures=["cocitation"], unweighted=True)
    assert found.settings.unweighted
    assert found.best.measure == "cocitation"
    with pytest.raises(
        UsageError, match="there are no candidates left to try: cocitation is left out"
    ):
        cocite.tune(graph, measures=["cocitation"])


def test_an_undirected_graph_is_tuned(make_graph: MakeGraph) -> None:
    graph = make_graph(blocks(size=6), undirected=True)
    found = cocite.tune(graph, **FEW)
    assert found.hidden is not None
    assert found.hidden % 2 == 0
    assert found.hidden > 0


@pytest.mark.parametrize(
    ("given", "said"),
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
def test_what_is_wrong_is_told(graph: Graph, given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        cocite.tune(graph, **given)


def test_nothing_to_hide_is_named(make_graph: MakeGraph, graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can be hidden"):
        cocite.tune(make_graph([("a", "b"), ("c", "d")]), tmp_path / "x.toml")
    with pytest.raises(InputError, match="cannot be read"):
        cocite.tune(graph, labels=tmp_path / "nowhere.tsv")
    (tmp_path / "there.toml").write_text("mine")
    with pytest.raises(OutputExists):
        cocite.tune(graph, tmp_path / "there.toml", **FEW)


def test_verb_settings(graph: Graph, tmp_path: Path, shell: Shell) -> None:
    output = tmp_path / "settings.toml"
    arguments = ["tune", str(graph.path), "--samples", "8", "--measure", "psimrank"]
    written = [*arguments, "--direction", "both", "-o", str(output)]
    told = json.loads(shell([*written, "--format", "json"]).out)
    assert told["settings"]["measure"] == "psimrank"
    assert told["best"].startswith("psimrank both")
    assert output.read_text().startswith("# Chosen by cocite tune on 2")
    index = str(tmp_path / "index")
    shell(["index", str(graph.path), "--settings", str(output), "-o", index])
    built = cocite.open(index)
    assert (built.measure, built.direction, built.samples) == ("psimrank", "both", 8)
    assert "exists" in shell(written, 1).err
    titles, *rows = shell([*arguments, "--format", "csv"]).out.strip().split("\n")
    assert titles.startswith("name,measure,direction,settings,round,figure,low,high,judged")
    assert len(rows) > 4
    printed = shell(arguments).out
    assert "coneighbors@10" in printed
    assert "\nchosen " in printed
    assert "links were hidden" in printed
