"""The command line of a study: its files, its refusals, nothing half-written."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from cocite import Graph, plots
from cocite.cli.main import main
from cocite.extras import install_command
from cocite.ranking import Iteration, study
from tests.conftest import MakeGraph

TABLES = ["positions.csv", "residual.csv", "settled.csv", "similarity.csv", "study.json"]
PICTURES = ["positions.png", "residual.png", "similarity.png"]


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    return make_graph([("a", "hub"), ("b", "hub"), ("red cat", "hub"), ("hub", "a"), ("a", "b")])


def names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def test_tables_and_pictures_are_written(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    out = tmp_path / "s" / "study"
    command = ["rank", str(graph.path), "--study", str(out), "--query-words", "CAT"]
    assert main([*command, "--compared", "1,2", "--reference", "9", "--format", "json"]) == 0
    pictures = [*PICTURES, "positions-query1.png", "similarity-query1.png"]
    assert names(out) == sorted(TABLES + pictures)
    assert all((out / name).read_bytes().startswith(b"\x89PNG") for name in pictures)
    assert names(out.parent) == ["study"]
    printed = json.loads(capsys.readouterr().out)
    assert printed["settled"] == json.loads((out / "study.json").read_text())["settled"]
    found = study(graph, sweeps=[1, 2], reference=9)
    with (out / "residual.csv").open() as file:
        rows = list(csv.DictReader(file))
    for iteration in Iteration:
        mine = [float(r["residual"]) for r in rows if r["iteration"] == iteration.value]
        assert mine == found.residuals[iteration].tolist()


def test_the_summary_is_a_table_or_csv(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["rank", str(graph.path), "--no-plots", "--overwrite", "--study", str(tmp_path / "s")]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert "same members" in printed.out
    assert "Gauss-Seidel: L1 residual" in printed.err
    assert main([*command, "--format", "csv"]) == 0
    assert capsys.readouterr().out == (tmp_path / "s" / "settled.csv").read_text()


def test_without_matplotlib_nothing_is_computed(
    graph: Graph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    out = tmp_path / "study"
    assert main(["rank", str(graph.path), "--study", str(out)]) == 2
    assert f"not installed: {install_command('plots')}" in capsys.readouterr().err
    assert not out.exists()
    assert main(["rank", str(graph.path), "--study", str(out), "--no-plots"]) == 0
    assert names(out) == TABLES


def test_an_existing_output_stays_without_overwrite(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "study"
    command = ["rank", str(graph.path), "--no-plots", "--study", str(out)]
    assert main(command) == 0
    assert main(command) == 1
    assert "exists. Choose another output, or pass --overwrite" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 0
    (out / "mine.txt").write_text("notes")
    assert main([*command, "--overwrite"]) == 1
    assert "no earlier run has left (mine.txt)" in capsys.readouterr().err
    assert (out / "mine.txt").read_text() == "notes"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_nothing_is_half_written(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    pytest.importorskip("matplotlib", reason="needs matplotlib")
    monkeypatch.setattr(plots, "draw", fail)
    folder = tmp_path / "outputs"
    command = ["rank", str(graph.path), "--study", str(folder / "study")]
    if error is KeyboardInterrupt:
        assert main(command) == 130
    else:
        with pytest.raises(error):
            main(command)
    assert names(folder) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--query-words", "dog"], "has all of the words 'dog'"),
        (["--query-texts", "texts"], "--query-texts says where words are looked for: give some"),
        (["--query-nodes", "FILE"], "no node is named 'nobody'"),
        (["--compared", "5,x"], "is no list of whole numbers"),
        (["-k", "3"], "-k does not go with --study"),
    ],
)
def test_wrong_use_is_refused(
    graph: Graph,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    (tmp_path / "FILE").write_text("nobody\n")
    options = [str(tmp_path / o) if o == "FILE" else o for o in options]
    out = tmp_path / "study"
    assert main(["rank", str(graph.path), "--no-plots", "--study", str(out), *options]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_options_of_a_study_need_one(graph: Graph, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rank", str(graph.path), "--top", "5"]) == 2
    assert "--top needs --study DIR or --against FILE" in capsys.readouterr().err
