"""Ctrl-C ends with 130 and one line, whenever it comes; and a file in the place of a verb."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Shell

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


def test_a_file_is_no_verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my links.tsv").write_text("a\tb\n")
    told = "'my links.tsv' is a file and no command. Ask it so: cocite related 'my links.tsv'"
    assert f"{told} a\n" in shell(["my links.tsv", "a"], 2).err
    assert f"{told} PAGE\n" in shell(["my links.tsv"], 2).err
