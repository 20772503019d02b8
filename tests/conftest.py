"""Fixtures that all tests share. Nothing here needs data from outside; what does, skips."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import cocite
from cocite import Graph

settings.register_profile(
    "cocite", deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile("cocite")

DATA = Path(os.environ.get("COCITE_DATA", Path(__file__).parents[2] / "shared" / "data"))
"""Real data sets: beside the checkout, or where COCITE_DATA says."""

Edges = Iterable[tuple[object, ...]]
MakeGraph = Callable[..., Graph]


@pytest.fixture
def data() -> Callable[[str], Path]:
    """The path of a real data set, or a skip that says what is missing."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"needs the data set {name} (COCITE_DATA names the folder)")
        return path

    return find


@pytest.fixture
def make_graph(tmp_path: Path) -> MakeGraph:
    """A stored graph from (source, target) pairs, or triples with a weight, and optionally isolated
    ``nodes``.
    """
    count = 0

    def make(edges: Edges, nodes: Iterable[object] = (), **options: object) -> Graph:
        nonlocal count
        count += 1
        links = tmp_path / f"links{count}.tsv"
        rows = ["\t".join(map(str, edge)) for edge in edges]
        links.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        extra = tmp_path / f"nodes{count}.tsv"
        extra.write_text("".join(f"{node}\n" for node in nodes), encoding="utf-8")
        output = tmp_path / f"g{count}.graph"
        options = {"delimiter": "tab", "header": "no"} | options
        return cocite.ingest(links, output, nodes=extra, **options)  # type: ignore[arg-type]

    return make


def by_walks(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a build, of ``psimrank`` unless they name another measure."""
    return {"measure": "psimrank", **options}


@pytest.fixture(autouse=True, scope="session")
def no_word_of_kernels() -> Iterator[None]:
    """A new machine compiles meanwhile and says so: not what is tested, but where it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cocite.compiled.clock.SAY_AFTER", float("inf"))
        yield
