"""What a build tells of its memory before it begins is what it takes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cocite import Graph
from cocite.errors import ResourceError
from cocite.graph.generate import generate_web
from cocite.index.build import IndexBuild
from cocite.index.plan import BuildOptions
from cocite.resources import Resources, Watch, format_size, own_memory

NODES, LINKS = 250_000, 2_500_000
CHILD = """
import json, re, sys
from pathlib import Path
from cocite import Graph
from cocite.index.build import IndexBuild
from cocite.index.plan import BuildOptions
from cocite.resources import Resources

graph, output, given = sys.argv[1:]
options = BuildOptions.checked("psimrank", settings={"samples": 5})
with IndexBuild(Graph.open(graph), output, options, Resources.checked(**json.loads(given))) as work:
    told = str(work.estimate())
    work.run()
# Not ru_maxrss: that begins with the peak of the process that started this one.
peak = 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
print(json.dumps({"told": told, "peak": peak}))
"""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("told") / "g"
    generate_web(path, nodes=NODES, links=LINKS, seed=1)
    return path


@pytest.mark.process
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"threads": 2}, "of memory on 2 threads, "),
        ({"blocks": 4, "threads": 1}, "4 blocks of the graph one after another"),
        ({"blocks": 4, "threads": 2}, "4 blocks of the graph one after another"),
        ({"memory": "12MB"}, "blocks of the graph one after another, for 16 samples at once"),
        ({"external": True}, "from disk, tokens too"),
        ({"memory": "5MB"}, "tokens too: in memory they take 6.63 MB"),
    ],
)
def test_memory_planned(web: Path, tmp_path: Path, given: dict[str, object], words: str) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    command = [sys.executable, "-c", CHILD, str(web), str(tmp_path / "i"), json.dumps(given)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert words in found["told"]
    told = float(found["told"].split(" MB of memory")[0].split()[-1]) * 1e6
    assert 0.9 * told <= found["peak"] <= 1.05 * told


def test_pilot_memory_is_shown(web: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are compiled for the first time, say."""
    options = BuildOptions.checked("psimrank", settings={"samples": 2})
    monkeypatch.setattr(Watch, "most", 10**10)
    with IndexBuild(Graph.open(web), tmp_path / "i", options, Resources(1, 10**9)) as work:
        assert ", 10 GB of memory on 1 thread" in str(work.estimate())


def test_a_watch_sees_what_is_taken_and_given_back() -> None:
    watch = Watch()
    if watch.most == 0:
        pytest.skip("needs /proc")
    assert 0 < Watch().most <= watch.most + (1 << 20)
    block = bytearray(1 << 28)
    block[:: 1 << 12] = b"x" * (1 << 16)
    assert watch.most >= (1 << 28)
    del block
    assert watch.most >= (1 << 28)  # the most since it was made


def test_refined_memory_is_planned_before_anything_is_made(web: Path, tmp_path: Path) -> None:
    options = BuildOptions.checked("simrank", settings={"samples": 2}, refine=True)
    # 24 bytes a link and node, 160 a node and 24 a node and thread
    whole = 2 * (4 * LINKS + 8 * (NODES + 1)) + 160 * NODES + 24 * (NODES + 1)
    with IndexBuild(Graph.open(web), tmp_path / "i", options, Resources(1, whole)) as work:
        told = str(work.estimate())  # it loads kernels, which count
        refining = format_size(whole + own_memory())
        assert f"and longer, with {refining}, to make refined answers ready" in told
    too_little = IndexBuild(Graph.open(web), tmp_path / "j", options, Resources(1, whole - 1))
    with too_little as work, pytest.raises(ResourceError, match="preparing refined answers"):
        work.estimate()
