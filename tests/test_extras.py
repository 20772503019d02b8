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


def test_extras_are_installed_in_one_way_which_works_in_a_clone() -> None:
    """By ``pip install '.[html]'``, of extras that there are; never by a name of a registry's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known, wrong = {*project["optional-dependencies"]}, []
    for path in DOCUMENTS:
        if path.name in ("CHANGELOG.md", "extras.py"):
            continue
        text = path.read_text("utf-8")
        found = re.findall(r"cocite\[[a-z]|pip install [^\n`#&|;]*\bcocite\b(?![-/.])", text)
        wrong += [(path, each) for each in found]
        for command in re.findall(r"pip install [^\n`]*", text):
            for each in re.findall(r"\S*[/.]\S*\[\S*", command):
                ours = FORM.match(each)
                if ours is None or not {*ours[1].split(",")} <= known:
                    wrong.append((path, command))
    assert wrong == []


def test_whoever_needs_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingLibrary, match=r"not installed: pip install '\.\[embed\]' in a"):
        need("gensim", "the embedding of walks")
    with pytest.raises(UsageError, match=r"pip install '\.\[plots\]' in .*; or omit them$"):
        plots.require("plots", "omit them")
