"""Shell completion: its candidates, and what a real bash inserts."""

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
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    (folder / "links.tsv").write_text(LINKS)
    cocite.ingest(folder / "links.tsv", folder / "links.graph", header="no")
    return folder


@pytest.fixture
def workdir(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working copy."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def completions(line: str) -> list[str]:
    """The candidates that bash gets for a line with the cursor at its end."""
    environ = {"_COCITE_COMPLETE": "bash_complete", "COMP_LINE": line}
    environ |= {"COMP_WORDBREAKS": " \t\n\"'><=;|&(:", "COMP_WORD": line.rpartition(" ")[2]}
    stdout = io.TextIOWrapper(buffer := io.BytesIO(), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(stdout):
        for name, text in environ.items():
            patch.setenv(name, text)
        assert main() == 0
        stdout.flush()
    return [found for found in buffer.getvalue().decode().splitlines() if found]


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
def test_completion_offers_candidates(workdir: Path, line: str, expected: list[str]) -> None:
    assert completions(line) == expected


def test_completion_reads_names_from_cache(workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(workdir / "cache"))
    line = "cocite related links.tsv Los"
    assert completions(line) == []
    assert main(["related", "links.tsv", "New York"]) == 0
    assert completions(line) == ["plain,Los Angeles"]
    (workdir / "links.tsv").write_text("changed\tx\n")
    assert completions(line) == []


def bash_output(folder: Path, keys: str) -> str:
    """What an interactive bash shows for typed keys."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ |= {"PS1": "$ ", "TERM": "dumb", "INPUTRC": "/dev/null"}
        os.environ["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    try:
        _read_until(terminal, r"\$ $")  # before that, the terminal echoes keys itself
        os.write(terminal, b"bind 'set enable-bracketed-paste off'; stty -echoctl; . ./script\n")
        _read_until(terminal, r"script\s+\$ $")
        os.write(terminal, keys.encode())
        return _read_until(terminal, r"#\s*$")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def _read_until(terminal: int, ending: str) -> str:
    output, deadline = "", time.monotonic() + 120
    while not re.search(ending, output):
        assert time.monotonic() < deadline, output
        if select.select([terminal], [], [], 1)[0]:
            output += os.read(terminal, 4096).decode()
    return output


@pytest.mark.process
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("related links.graph Lo", "related links.graph Los\\ Angeles #"),
        ("related links.graph New\\ Yorke", "related links.graph New\\ Yorker #"),
        ('related links.graph "Los A', 'related links.graph "Los Angeles" #'),
        ("related links.graph http://a.org/o", "related links.graph http://a.org/o\\'b #"),
        ("related links.gr", "related links.graph/#"),
        ("related links.graph x --dir", "related links.graph x --direction #"),
    ],
)
def test_completion_bash_inserts_quoted_names(
    workdir: Path, shell: Shell, typed: str, completed: str
) -> None:
    (workdir / "script").write_text(shell("completion bash").out)
    (workdir / "bin").mkdir()
    program = workdir / "bin" / "cocite"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m cocite "$@"\n')
    program.chmod(0o755)
    assert f"cocite {completed}" in bash_output(workdir, f"cocite {typed}\t#")


# -- versions, help and measure names --------------------------------------------------


def test_version_and_help_commands_print(shell: Shell) -> None:
    assert shell("-V").out == f"cocite, version {cocite.__version__}\n"
    for words in (["related"], ["generate", "web"], []):
        expected = shell([*words, "--help"]).out
        assert shell(["help", *words]).out == expected


def test_measure_option_ignores_case(make_graph: MakeGraph, tmp_path: Path, shell: Shell) -> None:
    assert find_measure("PSimRank") is find_measure("psimrank")
    assert find_measure("PPR_Symmetric") is find_measure("ppr-symmetric")
    with pytest.raises(UsageError, match=r"'simranc'\. Did you mean simrank\? The measures are"):
        find_measure("simranc")
    graph = str(make_graph([("a", "b"), ("a", "c"), ("b", "c")]).path)
    index = str(tmp_path / "x.index")
    command = ["index", graph, "-o", index, "--measure", "SimRank", "--samples", "3"]
    assert '"measure": "simrank"' in shell([*command, "--format", "JSON"]).out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_shell_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    if shell == "bash" and not Path("/bin/bash").exists():
        pytest.skip("needs bash, for its version")
    assert main(["completion", shell]) == 0
    assert f"_COCITE_COMPLETE={shell}_complete" in capsys.readouterr().out
