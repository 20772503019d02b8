"""``cocite plan`` and ``cocite refresh``, and ``info`` and ``why`` for a refreshed index."""

import csv
import io
import json
from pathlib import Path

import pytest

import cocite
from tests.conftest import Ask, Shell

WALKS = ("--measure", "psimrank")


@pytest.fixture
def graph(hub: Path) -> Path:
    return hub / "g"


def test_plan_table_has_doubled_column(
    graph: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = ask("plan", graph, *WALKS, "--delta", "0.05")
    assert code == 0
    assert "needed for error 2,473, order 6,141, recall 2,150, precision " in out
    lines = out.splitlines()
    title = next(i for i, line in enumerate(lines) if "12,282 samples" in line)
    assert lines[title].split("   ")[0] == "6,141 samples"
    figures = {line[32:].strip(): line[:32].split() for line in lines[title + 2 :]}
    assert figures["standard error of a score of 0.1, at most"] == ["0.0029", "0.0020"]
    row = "two nodes that differ by this keep their order: 99% (Theorem 6)"
    assert figures[row] == ["0.0500", "0.0354"]
    assert max(map(len, lines[2:])) <= 100
    monkeypatch.setenv("COLUMNS", "60")
    lines = ask("plan", graph, *WALKS, "--delta", "0.05")[1].splitlines()
    title = next(i for i, line in enumerate(lines) if "12,282 samples" in line)
    assert max(map(len, lines[title:])) <= 60


def test_plan_json_and_csv_hold_all_figures(graph: Path, ask: Ask) -> None:
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


def test_plan_omits_errors_without_samples(graph: Path, ask: Ask) -> None:
    code, out, _ = ask("plan", graph, "--measure", "cocitation")
    assert code == 0
    assert "standard error" not in out
    assert "on disk" in out


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        ("coupling", "measure  coupling, out-links, layout links"),
        ("blend:coupling+cocitation(direction=out)", ", mixed directions, layout links"),
    ],
)
def test_plan_names_link_direction(graph: Path, ask: Ask, measure: str, expected: str) -> None:
    """A setting may reverse it, and a blend may mix directions."""
    code, out, _ = ask("plan", graph, "--measure", measure)
    assert code == 0
    assert expected in out


def test_index_announces_standard_error(graph: Path, tmp_path: Path, shell: Shell) -> None:
    reply = shell(["index", graph, "-o", tmp_path / "x", *WALKS, "--samples", "25"])
    line = reply.err.splitlines()[0]
    assert line.endswith(", a standard error of at most 0.045 for a score of 0.1")
    reply = shell(["index", graph, "-o", tmp_path / "y", "--measure", "ppr"])
    assert "standard error" not in reply.err


# -- refresh ---------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, pages in (
        ("g", {"hub": ["one", "two"], "other": ["one", "two"], "last": ["one"]}),
        ("h", {"hub": ["one", "two", "three"], "more": ["three"]}),
    ):
        links = [(page, leaf) for page, leaves in pages.items() for leaf in leaves]
        cocite.ingest(links, tmp_path / name)
    cocite.build(tmp_path / "g", tmp_path / "i", samples=20, measure="psimrank")
    return tmp_path


def refresh(folder: Path, *options: str) -> list[str]:
    return ["refresh", str(folder / "i"), str(folder / "h"), "--date", "2026-11-20", *options]


def test_refresh_reports_samples_and_info_their_ages(folder: Path, ask: Ask) -> None:
    code, out, err = ask(*refresh(folder, "--fraction", "0.3", "--threads", "1"))
    assert code == 0
    assert "14 samples\n" in out
    assert f"6 samples from {folder / 'h'}" in out
    assert f"14 samples are kept, 6 are drawn from {folder / 'h'}" in err
    code, out, err = ask(*refresh(folder, "--fraction", "0.3"))  # a repeated run
    assert (code, "redrawn  nothing: the index is up to date with this graph" in out) == (0, True)
    assert f"was already refreshed from this graph ({folder / 'h'}), on 2026-11-20, so" in err
    again = refresh(folder, "--format", "json", "--memory", "1GB", "--force")
    code, out, _ = ask(*again)
    facts = json.loads(out)
    assert [facts[key] for key in ("kept", "drawn", "date")] == [18, 2, "2026-11-20"]
    _, out, _ = ask("info", folder / "i")
    rows = [line.split(maxsplit=2) for line in out.splitlines() if line.startswith("snapshot")]
    assert [(row[1], row[2]) for row in rows[:2]] == [
        ("2", "2 samples of 2026-11-20, from h"),
        ("1", "6 samples of 2026-11-20, from h"),
    ]
    assert rows[2][2].startswith("12 samples of 20")
    assert rows[2][2].endswith(", from g")
    _, out, _ = ask("info", folder / "i", "--format", "json")
    digests = [cocite.Graph.open(folder / name).digest for name in "gh"]
    found = [tuple(g.values())[:5] for g in json.loads(out)["snapshots"]]
    assert found == [
        (0, 8, 12, "g", digests[0]),
        (1, 20, 6, "h", digests[1]),
        (2, 26, 2, "h", digests[1]),
    ]
    code, _, _ = ask("verify", folder / "i")
    assert code == 0
    _, out, _ = ask("related", folder / "i", "three")
    assert "two" in out


def test_info_omits_ages_without_refresh(folder: Path, ask: Ask) -> None:
    _, out, _ = ask("info", folder / "i")
    assert "snapshot" not in out
    _, out, _ = ask("info", folder / "i", "--format", "json")
    (snapshot,) = json.loads(out)["snapshots"]
    assert (snapshot["refresh"], snapshot["samples"], snapshot["date"]) == (0, 20, None)
    cocite.build(folder / "g", folder / "c", measure="cocitation")
    _, out, _ = ask("info", folder / "c", "--format", "json")
    assert json.loads(out)["snapshots"] == []


def test_refresh_without_samples_recomputes_everything(folder: Path, ask: Ask) -> None:
    cocite.build(folder / "g", folder / "c", measure="cocitation")
    code, out, _ = ask("refresh", folder / "c", folder / "h")
    assert code == 0
    assert f"recomputed  everything, from {folder / 'h'}" in out
    _, out, _ = ask("info", folder / "c")
    assert "snapshot" not in out


def test_refresh_local_reports_changes(folder: Path, ask: Ask) -> None:
    cocite.build(folder / "g", folder / "f", measure="fusion")
    local = ["refresh", folder / "f", folder / "h", "--local", "--date", "2026-11-20"]
    code, out, _ = ask(*local)
    assert code == 0
    assert "recomputed  5 nodes\nall others  none\n" in out
    _, out, _ = ask("info", folder / "f")
    assert "refreshed   locally, on 2026-11-20: 5 nodes\n" in out
    assert ", from g; none\n" in out
    code, out, _ = ask(*local, "--force", "--format", "json")
    assert code == 0
    found = json.loads(out)["local"]
    assert (found["refreshes"], found["nodes"], found["checked"]) == (2, 0, 5)
    assert (found["differ"], found["largest_difference"]) == (0, 0)
    _, out, _ = ask("info", folder / "f")
    assert (
        "; 0.0% of 5 top-10 lists would change, and scores would change by at most 0.0000\n" in out
    )


def test_refresh_refuses_fraction_of_paths_layout(folder: Path, ask: Ask) -> None:
    cocite.build(folder / "g", folder / "p", samples=20, layout="paths", measure="psimrank")
    code, out, err = ask("refresh", folder / "p", folder / "h")
    assert (code, out) == (2, "")
    assert "Redraw all of them with --fraction 1, or" in err
    code, _, _ = ask("refresh", folder / "p", folder / "h", "--fraction", "1")
    assert code == 0


@pytest.mark.parametrize(("measure", "names"), [("psimrank", "text"), ("cocitation", "integers")])
def test_refresh_refuses_unrelated_graph(folder: Path, ask: Ask, measure: str, names: str) -> None:
    cocite.build(folder / "g", folder / "m", measure=measure)
    before = {file.name: file.read_bytes() for file in (folder / "m").iterdir()}
    rows = "x\ty\nx\tz\n" if names == "text" else "1\t2\n1\t3\n"
    (folder / "other.tsv").write_text(rows)
    cocite.ingest(folder / "other.tsv", folder / "o", header="no")
    for share in ("0.1", "1"):
        code, out, err = ask("refresh", folder / "m", folder / "o", "--fraction", share)
        assert (code, out) == (2, "")
        assert f"{folder / 'o'} has only 0 of 5 checked nodes of {folder / 'm'}" in err
        assert f"cocite index {folder / 'o'} -o {folder / 'm'} --overwrite" in err
    assert {file.name: file.read_bytes() for file in (folder / "m").iterdir()} == before
    assert not (folder / "m.building").exists()


def test_why_accepts_several_graphs(folder: Path, ask: Ask) -> None:
    ask(*refresh(folder, "--fraction", "0.3"))
    command = ["why", folder / "i", "one", "two", "--graph", folder / "h"]
    with_both = [*command, "--graph", folder / "g"]
    _, out, _ = ask(*with_both, "--format", "json")
    full = json.loads(out)
    assert {reason["node"] for reason in full["reasons"]} == {"hub", "other"}
    assert full["unattributed"] == 0
    assert ask(*command, "--format", "json")[1] == out  # the other graph has not moved
    (folder / "g").rename(folder / "moved")
    with_both = [*command, "--graph", folder / "moved"]
    _, out, _ = ask(*command, "--format", "json")
    found = json.loads(out)
    assert [reason["node"] for reason in found["reasons"]] == ["hub"]
    total = found["unattributed"] + found["reasons"][0]["contribution"]
    assert total == pytest.approx(full["score"], abs=1e-9)
    _, out, _ = ask(*command, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert sum(float(row["contribution"]) for row in rows) == pytest.approx(full["score"], abs=1e-9)
    _, out, _ = ask(*command)
    assert f"{found['unattributed']:.4f} comes from unknown pages" in out
    _, out, _ = ask(*with_both)
    assert "unknown pages" not in out
    _, out, _ = ask("why", folder / "i", "three", "more", "--graph", folder / "h")
    assert "do not meet in any of 6 samples" in out
