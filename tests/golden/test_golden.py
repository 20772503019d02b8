"""Stored graphs and indexes of every format that there was: opened, asked, and made again.

If one of these fails, read README.md here before anything else.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite import Graph
from cocite.cli.main import main
from cocite.errors import WrongFormat
from cocite.layouts.table import LAYOUTS
from cocite.store import FORMAT_VERSION
from tests.golden.make import ANSWERS, FOLDER, GRAPHS, INDEXES, answers_of, make, names_of

NOW = FOLDER / f"format-{FORMAT_VERSION}"
VERSIONS = sorted(int(path.name.removeprefix("format-")) for path in FOLDER.glob("format-*"))
CHANGED = (
    "{what} is not what format {version} is. Graphs and indexes that people have must stay "
    "readable, or be refused by their version. If this is meant: raise FORMAT_VERSION in "
    "src/cocite/store/manifest.py, say in FORMAT.md what is new, and make golden files of it: "
    "python -m tests.golden.make. See tests/golden/README.md"
)


def files(folder: Path) -> dict[str, bytes]:
    """What is stored, by its place."""
    found = (path for path in sorted(folder.glob("*/*/*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the golden files of this format: some questions make scratch files beside them."""
    assert NOW.is_dir(), f"there are no golden files of format {FORMAT_VERSION}: see README.md"
    folder = tmp_path_factory.mktemp("golden") / NOW.name
    shutil.copytree(NOW, folder)
    return folder


@pytest.fixture(scope="session")
def answers(kept: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((kept / ANSWERS).read_text("utf-8"))
    return found


def test_everything_that_the_format_has_is_among_them(kept: Path) -> None:
    indexes = [cocite.open(kept / "indexes" / name).stored for name in INDEXES]
    parts = [part for index in indexes for part in index.parts]
    assert {part.layout for part in parts} == set(LAYOUTS)
    assert {part.direction for part in parts} == {"in", "out", "both"}
    assert {index.direction for index in indexes} == {"in", "out", "both", "mixed"}
    assert {True, False} == {part.weighted for part in parts}
    assert any(index.refined for index in indexes)
    assert any(index.freshness.since is not None for index in indexes)
    kinds = {cocite.Graph.open(kept / "graphs" / name).store.facts["names"] for name in GRAPHS}
    assert kinds == {"text", "integers", "dense"}
    held = {name.split(".")[-1].split("-")[0] for index in indexes for name in index.store.arrays}
    assert {"diagonal", "since", "by_name", "cut", "mutual_norms", "out_weights"} <= held


def test_they_are_small() -> None:
    """They are kept for ever, and so are those of all formats to come."""
    assert sum(path.stat().st_size for path in NOW.rglob("*") if path.is_file()) < 500_000


@pytest.mark.parametrize("version", VERSIONS)
def test_a_format_is_read_or_refused_by_its_version(version: int) -> None:
    folder = FOLDER / f"format-{version}"
    stores = [*sorted((folder / "graphs").iterdir()), *sorted((folder / "indexes").iterdir())]
    assert len(stores) > 20
    for path in stores:
        open_ = Graph.open if path.parent.name == "graphs" else cocite.open
        if version == FORMAT_VERSION:
            open_(path)
        else:
            with pytest.raises(WrongFormat, match=f"is in format {version}; this release reads"):
                open_(path)


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_answers_what_it_answered(kept: Path, answers: dict[str, Any], name: str) -> None:
    assert main(["verify", str(kept / "indexes" / name)]) == 0
    assert answers_of(kept, name) == answers[name]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_names_what_it_named(kept: Path, answers: dict[str, Any], name: str) -> None:
    path = kept / "graphs" / name
    assert main(["verify", str(path)]) == 0
    graph = Graph.open(path)
    graph.check()
    assert names_of(graph) == answers[f"graph {name}"]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same made anew, by this code."""
    folder = tmp_path_factory.mktemp("anew")
    make(folder)
    return folder


def test_the_same_input_makes_the_same_bytes(kept: Path, made: Path) -> None:
    before, now = files(kept), files(made)
    for name in sorted(before.keys() | now.keys()):
        what = f"{name}, made of the same input as ever,"
        assert now.get(name) == before.get(name), CHANGED.format(what=what, version=FORMAT_VERSION)


def test_what_is_made_anew_answers_the_same(made: Path, answers: dict[str, Any]) -> None:
    assert json.loads((made / ANSWERS).read_text("utf-8")) == answers


def test_golden_files_are_kept() -> None:
    """Those of formats that were, too."""
    assert [2, *range(3, FORMAT_VERSION + 1)] == VERSIONS
