"""A command takes the memory that it tells: in a process of its own, as the kernel counts it."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.memory import measured

from cocite.compiled.place import place
from cocite.graph.generate import generate_web

_SHARE, _PIECES = 0.05, 2 << 20
"""How far what is taken may be from what was told; beside that, one piece of a mapped file, of
which the system decides (``store.arrays.AROUND``).
"""


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "g"
    generate_web(path, nodes=250_000, links=1_000_000, seed=1)
    return path


def kernels() -> list[Path]:
    """Those that are compiled and kept."""
    kept = place().written
    return sorted(kept.rglob("*.nbc")) if kept else []


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
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    command = ["index", str(web), "--measure", measure, "-o", str(tmp_path / "i")]
    command += [] if measure == "neighbourhood" else ["--samples", "32"]
    before, found = kernels(), measured(command, budget)
    if kernels() != before:  # compiling takes memory, too, and that of the run is not told
        found = measured([*command, "--overwrite"], budget)
    assert found is not None
    assert abs(found.peak - found.told) <= _SHARE * found.told + _PIECES, found
