"""What a shell is told when it completes; and that a real bash inserts what can be run."""

import io
import os
import pty
import re
import select
import shutil
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import cocite
from cocite.cli.main import main
from cocite.errors import UsageError
from cocite.measures import find_measure
from tests.conftest import MakeGraph, Shell

LINKS = "New York\tLos Angeles\nNew Yorker\tLos Angeles\nhttp://a.org/x\thttp://a.org/o'b\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("completion")
    (place / "links.tsv").write_text(LINKS)
    cocite.ingest(place / "links.tsv", place / "links.graph", header="no")
    return place


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy, to work in."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def offered(line: str) -> list[str]:
    """What bash is told for a line, the cursor at its end; below, it asks itself."""
    given = {"_COCITE_COMPLETE": "bash_complete", "COMP_LINE": line}
    given |= {"COMP_WORDBREAKS": " \t\n\"'><=;|&(:", "COMP_WORD": line.rpartition(" ")[2]}
    out = io.TextIOWrapper(held := io.BytesIO(), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out):
        for name, text in given.items():
            patch.setenv(name, text)
        assert main() == 0
        out.flush()
    return [found for found in held.getvalue().decode().splitlines() if found]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cocite rela", ["plain,related", "plain,related-all"]),
        ("cocite help rela", ["plain,related", "plain,related-all"]),
        ("cocite related links.graph X --direction i", ["plain,in"]),
        ("cocite index links.graph --direction=o", ["plain,out"]),
        ("cocite index links.graph --measure x", ["plain,xjaccard"]),
        ("cocite related links.graph New", ["plain,New York", "plain,New Yorker"]),
        ("cocite related links.graph New\\ ", ["plain,New York", "plain,New Yorker"]),
        ('cocite related links.graph "New Yorke', ["plain,New Yorker"]),
        ("cocite related links.graph http://a.org/x", ["plain,//a.org/x"]),
        ("cocite related links.graph Nobody", []),
        ("cocite related lin", ["file,lin"]),
        ("cocite info lin", ["file,lin"]),
        ("cocite index links.graph -o ne", ["file,ne"]),
    ],
)
def test_what_is_offered(here: Path, line: str, expected: list[str]) -> None:
    assert offered(line) == expected


def test_completion_of_names_in_a_link_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    line = "cocite related links.tsv Los"
    assert offered(line) == []
    assert main(["related", "links.tsv", "New York"]) == 0
    assert offered(line) == ["plain,Los Angeles"]
    (here / "links.tsv").write_text("changed\tx\n")
    assert offered(line) == []


def typed(folder: Path, keys: str) -> str:
    """What an interactive bash shows on its line for the keys."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ |= {"PS1": "$ ", "TERM": "dumb", "INPUTRC": "/dev/null"}
        os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    try:
        _until(terminal, r"\$ $")  # only then are keys its own: before, the terminal echoes them
        os.write(terminal, b"bind 'set enable-bracketed-paste off'; stty -echoctl; . ./script\n")
        _until(terminal, r"script\s+\$ $")
        os.write(terminal, keys.encode())
        return _until(terminal, r"#\s*$")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def _until(terminal: int, ending: str) -> str:
    found, end = "", time.monotonic() + 120
    while not re.search(ending, found):
        assert time.monotonic() < end, found
        if select.select([terminal], [], [], 1)[0]:
            found += os.read(terminal, 4096).decode()
    return found


@pytest.mark.process
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("begun", "whole"),
    [
        ("related links.graph Lo", "related links.graph Los\\ Angeles #"),
        ("related links.graph New\\ Yorke", "related links.graph New\\ Yorker #"),
        ('related links.graph "Los A', 'related links.graph "Los Angeles" #'),
        ("related links.graph http://a.org/o", "related links.graph http://a.org/o\\'b #"),
        ("related links.gr", "related links.graph/#"),
        ("related links.graph x --dir", "related links.graph x --direction #"),
    ],
)
def test_bash_inserts_what_can_be_run(here: Path, shell: Shell, begun: str, whole: str) -> None:
    (here / "script").write_text(shell("completion bash").out)
    (here / "bin").mkdir()
    program = here / "bin" / "cocite"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m cocite "$@"\n')
    program.chmod(0o755)
    assert f"cocite {whole}" in typed(here, f"cocite {begun}\t#")


# -- what people type ------------------------------------------------------------------


def test_the_version_and_the_help_of_a_verb(shell: Shell) -> None:
    assert shell("-V").out == f"cocite, version {cocite.__version__}\n"
    for words in (["related"], ["generate", "web"], []):
        wanted = shell([*words, "--help"]).out
        assert shell(["help", *words]).out == wanted


def test_names_are_taken_in_any_case(make_graph: MakeGraph, tmp_path: Path, shell: Shell) -> None:
    assert find_measure("PSimRank") is find_measure("psimrank")
    assert find_measure("PPR_Symmetric") is find_measure("ppr-symmetric")
    with pytest.raises(UsageError, match=r"'simranc'\. Did you mean simrank\? The measures are"):
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
