"""``cocite related INDEX -``: names from standard input, a line of JSON each."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

import cocite
from cocite.cli.main import main
from tests.conftest import MakeGraph, Shell

LINKS = [("a", "b"), ("a", "c"), ("d", "b"), ("d", "c"), ("e", "été")]


@pytest.fixture
def index(make_graph: MakeGraph, tmp_path: Path) -> str:
    cocite.build(make_graph(LINKS), tmp_path / "web.index")
    return str(tmp_path / "web.index")


def test_each_name_is_answered_as_by_itself(
    index: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = []
    for name in ("b", "été", "a"):
        assert main(["related", index, name, "-k", "2", "--format", "json"]) == 0
        alone.append(json.loads(capsys.readouterr().out))
    monkeypatch.setattr(sys, "stdin", io.StringIO("b\r\n\nété\na"))
    assert main(["related", index, "-", "-k", "2"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == alone


def test_a_name_that_is_no_node_has_its_error_and_the_others_are_answered(
    index: str, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("b\nnobody\nc\n"))
    printed = shell(["related", index, "-"], 2)
    first, second, third = map(json.loads, printed.out.splitlines())
    assert first["node"] == "b"
    assert second["node"] == "nobody"
    assert "no node is named 'nobody'" in second["error"]
    assert third["hits"]
    assert "1 of the names are no nodes" in printed.err


@pytest.mark.process
@pytest.mark.chosen
def test_an_answer_comes_before_the_next_name(index: str) -> None:
    """As a program talks with it: it waits for the answer and then writes the next name."""
    command = [sys.executable, "-m", "cocite", "related", index, "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as asked:
        assert asked.stdin is not None
        assert asked.stdout is not None
        for name in ("b", "c"):
            asked.stdin.write(f"{name}\n")
            asked.stdin.flush()
            assert json.loads(asked.stdout.readline())["node"] == name
        asked.stdin.close()
        assert asked.wait() == 0


def test_links_and_names_are_not_both_read_from_standard_input(shell: Shell) -> None:
    assert "cannot hold both links and names" in shell(["related", "-", "-"], 2).err
