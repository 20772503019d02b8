"""What a build tells of its memory before it begins is what it takes."""

from pathlib import Path

import pytest
from benchmarks.memory import measured

from cocite import Graph
from cocite.errors import ResourceError
from cocite.graph.generate import generate_web
from cocite.index.build import IndexBuild
from cocite.index.plan import BuildOptions
from cocite.resources import Resources, format_size

NODES, LINKS = 250_000, 2_500_000


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("told") / "g"
    generate_web(path, nodes=NODES, links=LINKS, seed=1)
    return path


@pytest.mark.process
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("--threads 2", "of memory on 2 threads, "),
        ("--blocks 4 --threads 1", "4 blocks of the graph one after another"),
        ("--blocks 4 --threads 2", "4 blocks of the graph one after another"),
        ("--memory 64MB", "blocks of the graph one after another, for 16 samples at once"),
        ("--out-of-core", "from disk, tokens too"),
        ("--memory 57MB", "tokens too: in memory they take 6.63 MB"),
    ],
)
def test_memory_planned(web: Path, tmp_path: Path, given: str, words: str) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    command = ["index", str(web), "--measure", "psimrank", "--samples", "5", *given.split()]
    found = measured([*command, "-o", str(tmp_path / "i")], None)
    assert found is not None
    assert words in found.note
    assert 0.85 * found.told <= found.peak <= 1.05 * found.told


def test_refined_memory_is_planned_before_anything_is_made(web: Path, tmp_path: Path) -> None:
    options = BuildOptions.checked("simrank", settings={"samples": 2}, refine=True)
    # 24 bytes a link and node, 160 a node and 24 a node and thread
    whole = 2 * (4 * LINKS + 8 * (NODES + 1)) + 160 * NODES + 24 * (NODES + 1)
    with IndexBuild(Graph.open(web), tmp_path / "i", options, Resources(1, whole)) as work:
        told = str(work.estimate())  # it loads kernels, which count
        refining = format_size(whole)
        assert f"and longer, with {refining}, to make refined answers ready" in told
    too_little = IndexBuild(Graph.open(web), tmp_path / "j", options, Resources(1, whole - 1))
    with too_little as work, pytest.raises(ResourceError, match="preparing refined answers"):
        work.estimate()
