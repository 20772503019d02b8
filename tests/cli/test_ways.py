"""What people type without looking it up: -V, help VERB, names in any case, the tab key."""

from __future__ import annotations

from pathlib import Path

import pytest

import cocite
from cocite.cli.main import main
from cocite.errors import UsageError
from cocite.measures import find_measure
from tests.conftest import MakeGraph, Shell


def test_the_version_and_the_help_of_a_verb(shell: Shell) -> None:
    assert shell(["-V"]).out == f"cocite, version {cocite.__version__}\n"
    for words in (["related"], ["generate", "web"], []):
        wanted = shell([*words, "--help"]).out
        assert shell(["help", *words]).out == wanted
    assert "Did you mean related" in shell(["help", "relate"], 2).err
    assert "has no commands of its own" in shell(["help", "related", "all"], 2).err


def test_names_are_taken_in_any_case(make_graph: MakeGraph, tmp_path: Path, shell: Shell) -> None:
    assert find_measure("PSimRank") is find_measure("psimrank")
    assert find_measure("PPR_Symmetric") is find_measure("ppr-symmetric")
    with pytest.raises(UsageError, match=r"'simranc'\. Did you mean simrank\? There are"):
        find_measure("simranc")
    graph = str(make_graph([("a", "b"), ("a", "c"), ("b", "c")]).path)
    index = str(tmp_path / "x.index")
    given = ["index", graph, "-o", index, "--measure", "SimRank", "--samples", "3"]
    assert '"measure": "simrank"' in shell([*given, "--format", "JSON"]).out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_given_what_it_runs(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    if shell == "bash" and not Path("/bin/bash").exists():
        pytest.skip("there is no bash here, whose version is asked")
    assert main(["completion", shell]) == 0
    assert f"_COCITE_COMPLETE={shell}_complete" in capsys.readouterr().out
