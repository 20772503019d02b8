"""What the documents promise of formats and of Windows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cocite
from cocite.storage import FORMAT_VERSION
from tests.conftest import MakeGraph
from tests.oracles.fusion import order

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
