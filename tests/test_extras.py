"""Extras are named with the command that installs them."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from benchmarks import plots
from cocite.errors import UsageError
from cocite.extras import MissingLibrary, need

ROOT = Path(__file__).parents[1]


DOCUMENTS = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *(path for path in ROOT.glob("examples/**/*") if path.suffix in (".yaml", ".md", ".py")),
    *ROOT.glob("src/**/*.py"),
    *ROOT.glob("benchmarks/**/*.py"),
]
FORM = re.compile(r"'\.\[([a-z,]+)\]'")


def test_docs_install_extras_from_clone_only() -> None:
    """By ``pip install '.[html]'``, of existing extras; never from a registry."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known, invalid = {*project["optional-dependencies"]}, []
    for path in DOCUMENTS:
        if path.name in ("CHANGELOG.md", "extras.py"):
            continue
        text = path.read_text("utf-8")
        found = re.findall(r"cocite\[[a-z]|pip install [^\n`#&|;]*\bcocite\b(?![-/.])", text)
        invalid += [(path, argument) for argument in found]
        for command in re.findall(r"pip install [^\n`]*", text):
            for argument in re.findall(r"\S*[/.]\S*\[\S*", command):
                extras = FORM.match(argument)
                if extras is None or not {*extras[1].split(",")} <= known:
                    invalid.append((path, command))
    assert invalid == []


def test_need_and_require_give_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingLibrary, match=r"not installed: pip install '\.\[embed\]' in a"):
        need("gensim", "the embedding of walks")
    with pytest.raises(UsageError, match=r"pip install '\.\[plots\]' in .*; or omit them$"):
        plots.require("plots", "omit them")
