"""The command line of plan: formats, exit codes, messages, and the line of index."""

import csv
import io
import json
from pathlib import Path

import pytest

from tests.conftest import Ask, Shell

WALKS = ("--measure", "psimrank")


@pytest.fixture
def graph(hub: Path) -> Path:
    return hub / "g"


def test_table_has_doubled_column(graph: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = ask("plan", graph, *WALKS, "--delta", "0.05")
    assert code == 0
    assert "needed for error 2,473, order 6,141, recall 2,150, precision " in out
    lines = out.splitlines()
    title = next(i for i, line in enumerate(lines) if "12,282 samples" in line)
    assert lines[title].split("   ")[0] == "6,141 samples"
    figures = {line[32:].strip(): line[:32].split() for line in lines[title + 2 :]}
    assert figures["standard error of a score of 0.1, at most"] == ["0.0029", "0.0020"]
    row = "two nodes so far apart keep their order: 99 % (Theorem 6)"
    assert figures[row] == ["0.0500", "0.0354"]
    assert max(map(len, lines[2:])) <= 100
    monkeypatch.setenv("COLUMNS", "60")
    lines = ask("plan", graph, *WALKS, "--delta", "0.05")[1].splitlines()
    title = next(i for i, line in enumerate(lines) if "12,282 samples" in line)
    assert max(map(len, lines[title:])) <= 60


def test_json_and_csv_hold_all_figures(graph: Path, ask: Ask) -> None:
    code, out, _ = ask("plan", graph, *WALKS, "--samples", "100", "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert found["settings"] == {"samples": 100, "length": 10, "seed": 0, "hubs": "plain"}
    assert found["planned"]["stderr"] == {"0.1": pytest.approx(0.02236, abs=1e-5), "0.3": 0.03}
    assert found["doubled"]["samples"] == 200
    _, out, _ = ask("plan", graph, *WALKS, "--samples", "100", "--format", "csv")
    rows = dict(csv.reader(io.StringIO(out)))
    assert rows["planned_samples"] == "100"
    assert rows["planned_bytes"] == str(found["planned"]["bytes"])


def test_a_measure_without_samples_has_one_column(graph: Path, ask: Ask) -> None:
    code, out, _ = ask("plan", graph, "--measure", "cocitation")
    assert code == 0
    assert "standard error" not in out
    assert "on disk" in out


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        ("coupling", "measure  coupling, out-links, layout links"),
        ("blend:coupling+cocitation(direction=out)", ", mixed directions, layout links"),
    ],
)
def test_plan_names_links_looked_at(graph: Path, ask: Ask, measure: str, said: str) -> None:
    """Those of the measure, which may be turned round, and may be several."""
    code, out, _ = ask("plan", graph, "--measure", measure)
    assert code == 0
    assert said in out


def test_index_says_how_exact_it_will_be(graph: Path, tmp_path: Path, shell: Shell) -> None:
    reply = shell(["index", graph, "-o", tmp_path / "x", *WALKS, "--samples", "25"])
    line = reply.err.splitlines()[0]
    assert line.endswith(", a standard error of at most 0.045 for a score of 0.1")
    reply = shell(["index", graph, "-o", tmp_path / "y", "--measure", "ppr"])
    assert "standard error" not in reply.err
