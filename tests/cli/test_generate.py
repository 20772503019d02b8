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
    assert shell("info g").out == out
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
