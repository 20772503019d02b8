"""Stores of earlier releases are read as they were; a change of what lies on disk is noticed; and
what the documents promise of formats and of Windows.
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
    "what lies on disk has changed. If that is meant, raise FORMAT_VERSION and add golden files: "
    "tests/golden/README.md"
)
# The sentence that says how an input was read may be reworded; a manifest's own checksum covers it.
PROSE = re.compile(rb'"read_as": ".*"|^ "checksum": "\w+"', re.MULTILINE)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): PROSE.sub(b"", path.read_bytes())
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


# -- promises --------------------------------------------------------------------------


ROOT = Path(__file__).parents[1]


def test_table_of_formats_is_that_of_golden_files() -> None:
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
@pytest.mark.parametrize("measure", ["neighborhood", "psimrank", "xjaccard", "pagesim"])
def test_windows_index_answers(make_graph: MakeGraph, tmp_path: Path, measure: str) -> None:
    graph = make_graph([("c", "a"), ("c", "b"), ("d", "a"), ("d", "b")])
    index = cocite.build(graph, tmp_path / "i", measure=measure)
    hits = sorted(index.related("a", 9), key=lambda h: (-h.score, order(index.nodes.id(h.node))))
    command = [sys.executable, "-c", WITHOUT_POSIX, str(tmp_path / "i")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[:2] == [hits[0].node, "True"]
    assert int(done.stdout.split()[2]) > 0
