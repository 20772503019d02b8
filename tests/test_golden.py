"""Stores of earlier releases are read as they were; a change of what lies on disk is noticed."""

import json
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.errors import WrongFormat
from cocite.index.verify import VerifyDocument
from cocite.storage import FORMAT_VERSION
from tests.golden import make

FOLDERS = sorted(make.HERE.glob("format-*"))
TODAY = make.HERE / f"format-{FORMAT_VERSION}"
CHANGED = (
    "what lies on disk has changed. If that is meant, raise FORMAT_VERSION and add golden files: "
    "tests/golden/README.md"
)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "answers.json"
    }


def test_there_are_golden_files_of_every_layout() -> None:
    from cocite.index.layouts.reader import LAYOUTS

    assert TODAY in FOLDERS
    indexes = [cocite.open(path) for path in sorted((TODAY / "indexes").iterdir())]
    assert {part.layout for index in indexes for part in index.stored.parts} == set(LAYOUTS)
    assert any(len(index.stored.freshness.snapshots) > 1 for index in indexes)
    assert any(index.stored.refined for index in indexes)
    kept = {path.name.split("-0")[0].removeprefix("in.") for path in TODAY.rglob("*")}
    assert {"since", "names.by_name", "names.values", "in_weights", "diagonal"} <= kept
    kinds = {cocite.Graph.open(path).info().names for path in (TODAY / "graphs").iterdir()}
    assert kinds == {"text", "integers", "integers 0 to n - 1"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("name", make.INDEXES)
def test_an_index_answers_as_it_did(folder: Path, name: str) -> None:
    told: dict[str, Any] = json.loads((folder / "answers.json").read_text("utf-8"))
    if name not in told:
        pytest.skip(f"{folder.name} had no {name}")
    try:
        index = cocite.open(folder / "indexes" / name)
    except WrongFormat as error:
        assert folder != TODAY
        assert "Rebuild it" in str(error)  # noqa: PT017 - either is right
        return
    assert json.loads(json.dumps(make.answers(index))) == told[name]
    assert VerifyDocument.of(folder / "indexes" / name).faults == []


def test_what_is_written_today_is_what_was_written(tmp_path: Path) -> None:
    make.make_all(tmp_path)
    made, kept = files(tmp_path), files(TODAY)
    assert made.keys() == kept.keys(), CHANGED
    assert [name for name in made if made[name] != kept[name]] == [], CHANGED
