"""``cocite related-all``: options, messages, exit codes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import cocite
from cocite.cli.main import main
from cocite.query.batch import run as batch
from cocite.store import Journal


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    links = folder / "links.tsv"
    links.write_text("hub\tone\nhub\ttwo\nhub\tthree\nother\tone\nother\ttwo\nthe\tthree\n")
    cocite.ingest(links, folder / "g", header="no")
    cocite.build(folder / "g", folder / "i", samples=40, seed=1, measure="psimrank")
    return folder / "i"


def test_it_writes_what_related_says_and_tells_what_it_took(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "all.csv"
    arguments = ["related-all", index, "-o", output, "-k", 2, "--decay", 0.5, "--format", "json"]
    assert main(list(map(str, arguments))) == 0
    printed = capsys.readouterr()
    assert printed.err == f"{output}: up to 2 hits for each of 6 nodes\n"
    with output.open() as file:
        rows = list(csv.reader(file))
    opened = cocite.open(index)
    expected = [
        [node, str(i), hit.node, str(hit.score), str(hit.stderr)]
        for node in opened.nodes
        for i, hit in enumerate(opened.related(node, 2, decay=0.5), 1)
    ]
    assert rows == [["node", "rank", "related", "score", "stderr"], *expected]
    facts = json.loads(printed.out)
    assert list(facts) == ["output", "nodes", "rows", "without_hits", "seconds", "bytes"]
    assert (facts["nodes"], facts["rows"]) == (6, len(expected))
    assert facts["without_hits"] == len(set(opened.nodes) - {row[0] for row in expected}) == 3
    assert facts["bytes"] == output.stat().st_size


def test_a_file_of_nodes(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nodes").write_text("two\n\none\n")
    command = ["related-all", str(index), "-o", str(tmp_path / "x.tsv"), "-k", "1"]
    assert main([*command, "--nodes", str(tmp_path / "nodes")]) == 0
    lines = (tmp_path / "x.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["node", "two", "one"]
    assert "2 of 2 in" in capsys.readouterr().out
    (tmp_path / "nodes").write_text("two\nfour\n")
    command[3] = str(tmp_path / "y.tsv")
    assert main([*command, "--nodes", str(tmp_path / "nodes")]) == 2
    assert "no node is named 'four'" in capsys.readouterr().err
    assert not list(tmp_path.glob("y.*"))


def test_nodes_without_hits_are_counted_of_all_that_are_asked(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """None are said where all have some."""
    command = ["related-all", str(index), "-o", str(tmp_path / "x.csv"), "--overwrite"]
    assert main(command) == 0
    said = "3 nodes; cocite related says of each of them why"
    assert said in " ".join(capsys.readouterr().out.split())
    assert main([*command, "--min-score", "0.99", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["without_hits"] == 6
    (tmp_path / "nodes").write_text("two\none\n")
    assert main([*command, "--nodes", str(tmp_path / "nodes")]) == 0
    assert "without hits" not in capsys.readouterr().out


def test_an_interruption_says_what_is_kept_and_how_to_go_on(
    index: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(batch, "_MOST_NODES", 2)
    real = Journal.append

    def append(self: Journal, piece: bytes) -> None:
        if self.sizes:
            raise KeyboardInterrupt
        real(self, piece)

    output = tmp_path / "x.parquet"
    command = ["related-all", str(index), "-o", str(output)]
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", append)
        assert main(command) == 130
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"interrupted; the hits of 2 of 6 nodes are kept in {output}.building: repeat the command "
        "to go on"
    )
    assert main(command) == 0
    printed = capsys.readouterr()
    assert printed.err == (
        f"{output}: up to 20 hits for each of 6 nodes; goes on after 2 that an earlier run "
        "finished\n"
    )
    assert "4 of 6 in" in printed.out
    assert "3 nodes; cocite related says" in " ".join(printed.out.split())
    assert main(command) == 1
    assert "exists. Choose another output, or pass --overwrite" in capsys.readouterr().err
