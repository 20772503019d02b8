"""A command takes the memory that it tells: in a process of its own, as the kernel counts it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.memory import measured

from cocite.cli.main import main
from cocite.graph import Graph
from cocite.graph.generate import generate_web
from tests.conftest import Shell

_SHARE, _PIECES = 0.05, 2 << 20
"""How far what is taken may be from what was told; beside that, one piece of a mapped file, of
which the system decides (``store.arrays.AROUND``).
"""


def assert_takes_what_it_told(command: list[str], budget: str | None) -> None:
    """No run takes more; and one of three takes as much, since what threads hold at once depends
    on which of them the system lets run.
    """
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    for _ in range(3):
        found = measured(command, budget)
        assert found is not None
        room = _SHARE * found.told + _PIECES
        assert found.peak <= found.told + room, found
        if found.peak >= found.told - room:
            return
    pytest.fail(str(found))


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "g"
    generate_web(path, nodes=250_000, links=1_000_000, seed=1)
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of which the lists, and not the links, are what takes memory."""
    path = tmp_path_factory.mktemp("memory") / "g"
    generate_web(path, nodes=80_000, links=320_000, seed=1)
    return path


@pytest.mark.process
@pytest.mark.parametrize(
    ("measure", "budget"),
    [
        ("psimrank", "5MB"),
        ("psimrank", None),
        ("xjaccard", None),
        ("neighbourhood", "40MB"),  # whose lists are turned round on disk
    ],
)
def test_an_index_takes_the_memory_that_was_told(
    web: Path, tmp_path: Path, measure: str, budget: str | None
) -> None:
    command = ["index", str(web), "--measure", measure, "-o", str(tmp_path / "i")]
    command += [] if measure == "neighbourhood" else ["--samples", "32"]
    assert_takes_what_it_told([*command, "--overwrite"], budget)


@pytest.mark.process
@pytest.mark.parametrize("budget", ["20MB", "26MB", None])
def test_lists_take_the_memory_that_was_told(
    small: Path, tmp_path: Path, budget: str | None
) -> None:
    """In files, and given back while they are turned round; by default in memory."""
    command = ["index", str(small), "--measure", "neighbourhood", "-o", str(tmp_path / "i")]
    assert_takes_what_it_told([*command, "--overwrite"], budget)


@pytest.mark.parametrize("measure", ["xjaccard", "neighbourhood"])
def test_what_a_refusal_tells_as_the_least_suffices(
    small: Path, tmp_path: Path, shell: Shell, measure: str
) -> None:
    command = ["index", str(small), "--measure", measure, "-o", str(tmp_path / "i")]
    command += [] if measure == "neighbourhood" else ["--samples", "16"]
    least = re.search(r"needs? ([0-9.]+ MB) of memory", shell([*command, "--memory", "5MB"], 1).err)
    assert least is not None
    assert main([*command, "--memory", least[1]]) == 0


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "g"
    generate_web(path, nodes=1_000_000, links=1_000_000, seed=1)
    return path


@pytest.mark.process
@pytest.mark.parametrize("budget", ["9MB", "30MB"])
def test_a_ranking_in_blocks_takes_the_memory_that_was_told(web: Path, budget: str) -> None:
    assert_takes_what_it_told(["rank", str(web)], budget)


@pytest.mark.process
@pytest.mark.parametrize("personal", [False, True])
def test_a_ranking_takes_the_memory_that_was_told(sparse: Path, personal: bool) -> None:
    """Of many nodes with few links, where little of what there may be is there at once."""
    name = Graph.open(sparse).names[7]
    command = ["rank", str(sparse), *(["--toward", name] * personal)]
    assert_takes_what_it_told(command, None)
