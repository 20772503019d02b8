"""``--quiet`` and ``--log-json``, before the verb and behind it; on a terminal, too; and Ctrl-C,
which ends with 130 and one line, whenever it comes.
"""

import json
import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import pytest

from cocite.cli.main import _COMMANDS, cli
from tests.conftest import Shell
from tests.terminal import on_a_terminal

ASK = ["related", "links.tsv", "x", "--format", "csv"]


pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize("command", [["-q", *ASK], ["--quiet", *ASK], [*ASK, "--quiet"]])
def test_quiet_says_nothing_but_what_is_wrong(shell: Shell, command: list[str]) -> None:
    quiet = shell(command)
    assert quiet.err == ""
    said = shell(ASK)
    assert (said.out, said.err.count("\n")) == (quiet.out, 1)
    reply = shell("related none.tsv x --quiet", 1)
    assert reply.err == "Error: none.tsv does not exist\n"


def lines(text: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines()]
    for line in found:
        assert datetime.fromisoformat(line["time"]).utcoffset() is not None
        assert line["level"] in ("info", "warning", "error")
        assert isinstance(line["message"], str)
    return found


@pytest.mark.parametrize("before", [True, False])
def test_every_line_is_json(shell: Shell, before: bool) -> None:
    told = lines(shell(["--log-json", *ASK] if before else [*ASK, "--log-json"]).err)
    progress = [line for line in told if "done" in line]
    assert {"done", "total", "unit"} <= progress[0].keys()
    written = [line for line in progress if line["message"] == "writing the links"]
    assert (written[-1]["done"], written[-1]["total"], written[-1]["unit"]) == (6, 6, "links")
    notes = [line["message"] for line in told if "done" not in line]
    assert notes[0].startswith("read links.tsv: ")
    assert notes[1].endswith("measure: fusion")


def test_every_verb_takes_both() -> None:
    """Those of a group, too; and no command has an option of its own that is called so."""

    def see(command: click.Command) -> None:
        flags = [flag for parameter in command.params for flag in parameter.opts]
        assert flags.count("--quiet") == flags.count("--log-json") == flags.count("-q") == 1
        if isinstance(command, click.Group):
            for verb in command.commands.values():
                see(verb)

    for verb in _COMMANDS:
        found = cli.get_command(click.Context(cli), verb)
        assert found is not None
        see(found)


@pytest.mark.process
@pytest.mark.parametrize(
    ("option", "drawn"), [((), True), (("-q",), False), (("--log-json",), False)]
)
def test_drawing_is_for_terminals_only(here: Path, option: tuple[str, ...], drawn: bool) -> None:
    (here / "links.tsv").write_text("".join(f"{i % 997}\t{i * i % 991}\n" for i in range(20_000)))
    command = [sys.executable, "-m", "cocite", "ingest", "links.tsv", "-o", "g", *option]
    code, screen = on_a_terminal(command, os.environ)
    assert code == 0
    assert ("\x1b[" in screen) == drawn
    if option == ("-q",):
        assert screen == ""
    elif option:
        assert lines(screen)


# -- interrupted -----------------------------------------------------------------------


STOP = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


def run(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A process that finds modules in ``folder`` first."""
    found = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "cocite", *arguments]
    told = os.environ | {"PYTHONPATH": found} | more
    return subprocess.run(
        command, env=told, capture_output=True, text=True, check=False, preexec_fn=_heard
    )


def _heard() -> None:
    """As at a terminal: jobs in the background hand on that they ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.process
@pytest.mark.chosen
@pytest.mark.parametrize("module", ["click", "numpy"])
def test_while_it_is_imported(tmp_path: Path, module: str) -> None:
    """``click`` is imported first of all, ``numpy`` by a verb."""
    (tmp_path / module).mkdir()
    (tmp_path / module / "__init__.py").write_text(STOP)
    asked = ["related", str(tmp_path), "PAGE"]
    done = run(tmp_path, *asked)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
    line = json.loads(run(tmp_path, *asked, "--log-json").stderr)
    assert (line["level"], line["message"], line["code"]) == ("error", "interrupted", 130)


@pytest.mark.process
@pytest.mark.chosen
def test_when_it_is_ignored_it_is(tmp_path: Path) -> None:
    """A shell says so of jobs in the background."""
    (tmp_path / "click.py").write_text(STOP + "raise SystemExit(7)\n")
    command = [sys.executable, "-m", "cocite"]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        found = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
        told = os.environ | {"PYTHONPATH": found}
        assert subprocess.run(command, env=told, check=False).returncode == 7
    finally:
        signal.signal(signal.SIGINT, before)
