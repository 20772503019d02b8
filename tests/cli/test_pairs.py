"""``cocite similarity --pairs``: a file of pairs, printed or written."""

import csv
import io
import json
from pathlib import Path

import duckdb
import pytest

import cocite
from cocite.cli.main import main
from tests.conftest import Shell

PAIRS = [("one", "two"), ("two", "[red]three[/]"), ("one", "one"), ("hub", "one")]


def test_pairs_are_printed_and_written(
    hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    rows = "".join(f"{i},{b},{a}\n" for i, (a, b) in enumerate(PAIRS))
    Path("wide.csv").write_text("number,to,from\n" + rows)
    index = cocite.open(hub / "i")
    expected = [(a, b, *index.similarity(a, b, decay=0.5)) for a, b in PAIRS]
    asked = ["similarity", str(hub / "i"), "--decay", "0.5", "--pairs"]
    told = json.loads(shell([*asked, "pairs.tsv", "--format", "json"]).out)
    assert [tuple(pair.values()) for pair in told["pairs"]] == expected
    assert told["settings"]["decay"] == 0.5
    reply = shell([*asked, "wide.csv", "--pair-columns", "from,to", "--format", "csv"])
    titles, *found = csv.reader(io.StringIO(reply.out))
    assert titles == ["a", "b", "score", "stderr", "low", "high"]
    assert [(a, b, *map(float, numbers)) for a, b, *numbers in found] == expected
    printed = shell([*asked, "pairs.tsv"])
    assert len(printed.out.splitlines()) == 6
    assert "pairs.tsv: tab-separated, no header" in printed.err
    parquet = tmp_path / "pairs.parquet"
    assert "4 pairs" in shell([*asked, "pairs.tsv", "-o", parquet, "--threads", "1"]).out
    assert duckdb.read_parquet(str(parquet)).fetchall() == expected
    again = tmp_path / "again.jsonl"
    reply = shell([*asked, parquet, "-o", again, "--format", "json"])
    assert json.loads(reply.out)["pairs"] == 4
    lines = [tuple(json.loads(line).values()) for line in again.read_text().splitlines()]
    assert lines == expected
    assert main([*asked, "pairs.tsv", "-o", str(again)]) == 1
    assert main([*asked, "pairs.tsv", "-o", str(again), "--overwrite"]) == 0


def test_pages_are_written_with_their_titles(tmp_path: Path, shell: Shell) -> None:
    graph = cocite.ingest([("h", "x"), ("h", "y")], tmp_path / "g", titles={"x": "The page X"})
    cocite.build(graph, tmp_path / "i", measure="cocitation")
    (tmp_path / "pairs.tsv").write_text("x\ty\n")
    asked = ["similarity", str(tmp_path / "i"), "--pairs", str(tmp_path / "pairs.tsv")]
    (pair,) = json.loads(shell([*asked, "--format", "json"]).out)["pairs"]
    assert (pair["a_title"], pair["b_title"]) == ("The page X", None)
    assert main([*asked, "-o", str(tmp_path / "out.jsonl")]) == 0
    assert json.loads((tmp_path / "out.jsonl").read_text()) == pair
