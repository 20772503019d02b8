"""``--quiet`` and ``--log-json``, before and after the command, also on a terminal; and Ctrl-C,
which always ends with one line and exit code 130.
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
from tests.terminal import run_on_terminal

QUERY = ["related", "links.tsv", "x", "--format", "csv"]


pytestmark = pytest.mark.usefixtures("workdir")


@pytest.mark.parametrize("command", [["-q", *QUERY], ["--quiet", *QUERY], [*QUERY, "--quiet"]])
def test_quiet_prints_only_errors(shell: Shell, command: list[str]) -> None:
    quiet = shell(command)
    assert quiet.err == ""
    verbose = shell(QUERY)
    assert (verbose.out, verbose.err.count("\n")) == (quiet.out, 1)
    reply = shell("related none.tsv x --quiet", 1)
    assert reply.err == "Error: none.tsv does not exist\n"


def log_lines(text: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines()]
    for line in found:
        assert datetime.fromisoformat(line["time"]).utcoffset() is not None
        assert line["level"] in ("info", "warning", "error")
        assert isinstance(line["message"], str)
    return found


@pytest.mark.parametrize("before", [True, False])
def test_log_json_prints_json_lines(shell: Shell, before: bool) -> None:
    log = log_lines(shell(["--log-json", *QUERY] if before else [*QUERY, "--log-json"]).err)
    progress = [line for line in log if "done" in line]
    assert {"done", "total", "unit"} <= progress[0].keys()
    written = [line for line in progress if line["message"] == "writing the links"]
    assert (written[-1]["done"], written[-1]["total"], written[-1]["unit"]) == (6, 6, "links")
    notes = [line["message"] for line in log if "done" not in line]
    assert notes[0].startswith("read links.tsv: ")
    assert notes[1].endswith("measure: fusion")


def test_quiet_and_log_json_exist_on_every_command() -> None:
    """Also on subcommands; and no command defines them itself."""

    def visit(command: click.Command) -> None:
        flags = [flag for parameter in command.params for flag in parameter.opts]
        assert flags.count("--quiet") == flags.count("--log-json") == flags.count("-q") == 1
        if isinstance(command, click.Group):
            for verb in command.commands.values():
                visit(verb)

    for verb in _COMMANDS:
        found = cli.get_command(click.Context(cli), verb)
        assert found is not None
        visit(found)


@pytest.mark.process
@pytest.mark.parametrize(
    ("option", "drawn"), [((), True), (("-q",), False), (("--log-json",), False)]
)
def test_progress_bars_need_terminal(workdir: Path, option: tuple[str, ...], drawn: bool) -> None:
    (workdir / "links.tsv").write_text(
        "".join(f"{i % 997}\t{i * i % 991}\n" for i in range(20_000))
    )
    command = [sys.executable, "-m", "cocite", "ingest", "links.tsv", "-o", "g", *option]
    code, screen = run_on_terminal(command, os.environ)
    assert code == 0
    assert ("\x1b[" in screen) == drawn
    if option == ("-q",):
        assert screen == ""
    elif option:
        assert log_lines(screen)


# -- interrupts ------------------------------------------------------------------------


STOP = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run cocite with ``folder`` first on the module path."""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "cocite", *arguments]
    environ = os.environ | {"PYTHONPATH": path} | variables
    return subprocess.run(
        command,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_accept_interrupts,
    )


def _accept_interrupts() -> None:
    """As on a terminal: background jobs inherit an ignored SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.process
@pytest.mark.chosen
@pytest.mark.parametrize("module", ["click", "numpy"])
def test_interrupt_during_import_exits_130(tmp_path: Path, module: str) -> None:
    """``click`` is imported first, ``numpy`` by a command."""
    (tmp_path / module).mkdir()
    (tmp_path / module / "__init__.py").write_text(STOP)
    command = ["related", str(tmp_path), "PAGE"]
    result = run(tmp_path, *command)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "interrupted\n")
    line = json.loads(run(tmp_path, *command, "--log-json").stderr)
    assert (line["level"], line["message"], line["code"]) == ("error", "interrupted", 130)


@pytest.mark.process
@pytest.mark.chosen
def test_ignored_interrupt_stays_ignored(tmp_path: Path) -> None:
    """As shells set it for background jobs."""
    (tmp_path / "click.py").write_text(STOP + "raise SystemExit(7)\n")
    command = [sys.executable, "-m", "cocite"]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
        environ = os.environ | {"PYTHONPATH": path}
        assert subprocess.run(command, env=environ, check=False).returncode == 7
    finally:
        signal.signal(signal.SIGINT, before)
