"""Stores of earlier releases still open and give the same answers, and changes to stored bytes are
noticed; the documented formats and Windows are checked, too.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.errors import WrongFormat
from cocite.index.verify import VerifyDocument
from cocite.storage import FORMAT_VERSION
from tests.conftest import MakeGraph
from tests.golden import make
from tests.oracles.fusion import order

FOLDERS = sorted(make.HERE.glob("format-*"))
TODAY = make.HERE / f"format-{FORMAT_VERSION}"
CHANGED = (
    "stored bytes have changed. If that is intended, raise FORMAT_VERSION and add golden files: "
    "tests/golden/README.md"
)
# How an input was read may be reworded, which also changes the manifest's own checksum.
PROSE = re.compile(rb'"read_as": ".*"|^ "checksum": "\w+"', re.MULTILINE)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): PROSE.sub(b"", path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "answers.json"
    }


def test_golden_files_cover_every_layout() -> None:
    from cocite.index.layouts.reader import LAYOUTS

    assert TODAY in FOLDERS
    indexes = [cocite.open(path) for path in sorted((TODAY / "indexes").iterdir())]
    assert {part.layout for index in indexes for part in index.stored.parts} == set(LAYOUTS)
    assert any(len(index.stored.freshness.snapshots) > 1 for index in indexes)
    assert any(index.stored.refined for index in indexes)
    names = {path.name.split("-0")[0].removeprefix("in.") for path in TODAY.rglob("*")}
    assert {"since", "names.by_name", "names.values", "in_weights", "diagonal"} <= names
    kinds = {cocite.Graph.open(path).info().names for path in (TODAY / "graphs").iterdir()}
    assert kinds == {"text", "integers", "integers 0 to n - 1"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("name", make.INDEXES)
def test_golden_index_answers_as_stored(folder: Path, name: str) -> None:
    expected: dict[str, Any] = json.loads((folder / "answers.json").read_text("utf-8"))
    if name not in expected:
        pytest.skip(f"{folder.name} had no {name}")
    try:
        index = cocite.open(folder / "indexes" / name)
    except WrongFormat as error:
        assert folder != TODAY
        assert "Rebuild it" in str(error)  # noqa: PT017 - either is right
        return
    assert json.loads(json.dumps(make.answers(index))) == expected[name]
    assert VerifyDocument.of(folder / "indexes" / name).faults == []


def test_golden_files_equal_current_output(tmp_path: Path) -> None:
    make.make_all(tmp_path)
    current, golden = files(tmp_path), files(TODAY)
    assert current.keys() == golden.keys(), CHANGED
    assert [name for name in current if current[name] != golden[name]] == [], CHANGED


# -- documented formats and Windows ----------------------------------------------------


ROOT = Path(__file__).parents[1]


def test_upgrading_doc_lists_golden_formats() -> None:
    text = (ROOT / "docs/upgrading.md").read_text("utf-8")
    listed = re.findall(r"^\| (\d+) \| ", text, re.M)
    stored = sorted(
        path.name.removeprefix("format-") for path in ROOT.glob("tests/golden/format-*")
    )
    assert listed == stored
    assert listed[-1] == str(FORMAT_VERSION)


WITHOUT_POSIX = """
import mmap, os, sys
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "fork", "geteuid", "getuid",
             "posix_fadvise", "posix_fallocate", "pread", "preadv", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
for name in [name for name in dir(mmap) if name.startswith(("MADV_", "MAP_", "PROT_"))]:
    delattr(mmap, name)
import cocite
index = cocite.open(sys.argv[1])
hits = index.related("a", 2)
print(hits[0].node, index.similarity("a", hits[0].node).score > 0, len(index.why("a", "b").reasons))
"""


@pytest.mark.process
@pytest.mark.parametrize("measure", ["neighborhood", "psimrank"])
def test_index_answers_without_posix(make_graph: MakeGraph, tmp_path: Path, measure: str) -> None:
    graph = make_graph([("c", "a"), ("c", "b"), ("d", "a"), ("d", "b")])
    index = cocite.build(graph, tmp_path / "i", measure=measure)
    hits = sorted(index.related("a", 9), key=lambda h: (-h.score, order(index.nodes.id(h.node))))
    command = [sys.executable, "-c", WITHOUT_POSIX, str(tmp_path / "i")]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.split()[:2] == [hits[0].node, "True"]
    assert int(process.stdout.split()[2]) > 0
