"""``cocite generate web`` as a person or a program meets it."""

import json
import re
from pathlib import Path

import pytest

from cocite import Graph
from cocite.cli.main import main
from tests.conftest import Shell

WEB = ["generate", "web", "--pages", "300", "--links", "2000", "--seed", "7", "-o", "g"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_prints_the_graph_that_it_made(here: Path, shell: Shell) -> None:
    out, err = shell(WEB)
    assert "Error" not in err  # where kernels are compiled first there is progress
    shown = dict(re.split(r" {2,}", line, maxsplit=1) for line in out.splitlines())
    assert shown["graph"] == "g"
    assert shown["nodes"] == "300, named by text"
    assert shown["links"] == "2,000, 6.7 per node"
    assert shell(["info", "g"]).out == out
    assert main(["verify", "g"]) == 0


def test_its_facts_are_for_programs_too(here: Path, shell: Shell) -> None:
    found = json.loads(shell([*WEB, "--names", "integers", "--format", "json"]).out)
    assert (found["nodes"], found["edges"], found["names"]) == (300, 2000, "integers 0 to n - 1")
    reply = shell([*WEB, "--overwrite", "--format", "csv"])
    assert reply.out.startswith("fact,value\nkind,graph\n")


def test_labels_are_written_beside(here: Path) -> None:
    assert main([*WEB, "--labels", "topics.tsv"]) == 0
    rows = [row.split("\t") for row in (here / "topics.tsv").read_text().splitlines()]
    assert [name for name, _ in rows] == list(Graph.open("g").names)
    assert all(re.fullmatch(r"topic\.\d\.\d\.\d", topic) for _, topic in rows)
    assert sorted(path.name for path in here.iterdir()) == ["g", "topics.tsv"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("--pages 0 --links 0", 2, "--pages is 0; a graph has 1 to 4,294,967,295"),
        ("--pages 5 --links 11", 2, "--links is 11; a generated graph of 5 nodes has 0 to 10"),
        ("--pages 5 --links 5 --seed -3", 2, "--seed is -3; it must be 0 to 2**64 - 1"),
        ("--pages x --links 5", 2, "Invalid value for '--pages'"),
        ("--pages 5", 2, "Missing option '--links'"),
        ("--pages 5 --links 5 --names urls", 2, "Invalid value for '--names'"),
        ("--pages 5 --links 5 --labels .", 1, ". is a directory"),
    ],
)
def test_wrong_use_is_an_error_and_makes_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: str, code: int, message: str
) -> None:
    assert main(["generate", "web", "-o", "g", *arguments.split()]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert "Error: " in err
    assert message in err
    assert list(here.iterdir()) == []


def test_every_option_has_help(shell: Shell) -> None:
    shown = shell(["generate", "web", "--help"]).out
    for option in ("pages", "links", "seed", "output", "labels", "names", "overwrite", "format"):
        assert re.search(rf"--{option}\b.*\S\s+\S", shown), option
    assert "web" in shell(["generate", "--help"]).out
