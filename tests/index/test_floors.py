"""The minimum memory that `cocite measures` shows suffices, and less is refused."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import ResourceError
from cocite.index.build import IndexBuild
from cocite.index.layouts.reader import LAYOUTS
from cocite.index.plan import BuildOptions
from cocite.measures import find_measure
from cocite.measures.evidence import FLOOR_WORDS, FLOORS
from cocite.resources import Resources
from tests.builds import files
from tests.conftest import measure_texts, write_texts
from tests.marks import choose

MIB = 1 << 20
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "compact": ("compact-simrank", {}),
    "features": ("pagesim", {"radius": 2}),
    "links": ("cocitation", {}),
    "minhash": ("xjaccard", {"length": 3}),
    "nearest": ("snn", {}),
    "packed": ("psimrank", {}),
    "paths": ("psimrank", {"length": 4}),
    "rows": ("fusion", {}),
    "text": ("tfidf", {"min_df": 1, "max_df": 1.0}),
    "sketch": ("xjaccard", {"bits": 3, "length": 3}),
    "trees": ("psimrank", {}),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    path = tmp_path_factory.mktemp("floors")
    rng = np.random.default_rng(3)
    links = rng.integers(0, 10_000, (75_000, 2))
    np.savetxt(path / "links.txt", links, "%d")
    return cocite.ingest(path / "links.txt", path / "g")


def evaluate_floor(text: str, graph: Graph, settings: dict[str, Any]) -> float:
    """Evaluate a formula in which adjacent names are multiplied."""
    links = 8 * graph.nodes + 4 * graph.edges
    variables = {"n": graph.nodes, "m": graph.edges, "L": links, "MiB": MIB, "max": max, "min": min}
    formula = re.search(r"block is (.*?); rows", FLOOR_WORDS)
    assert formula is not None
    block = eval(with_products(formula[1]), variables)
    variables["w"], variables["b"] = count_distinct_words(graph), (graph.nodes - 1).bit_length()
    variables |= settings | {
        "block": block,
        "s": min(settings.get("samples", 16), 16),
        "rows": min(settings.get("radius", 0), 8),
    }
    return float(eval(with_products(text), variables))


def count_distinct_words(graph: Graph) -> int:
    """Count the words of the texts that text measures compare."""
    return len(set(write_texts(graph).read_text().split()) - set(graph.names))


def with_products(text: str) -> str:
    return re.sub(r"(?<=[\w)]) (?=[\w(])", " * ", text)


def test_floors_cover_every_layout() -> None:
    assert FLOORS.keys() == LAYOUTS.keys() == KINDS.keys()


@pytest.mark.long
@pytest.mark.parametrize("layout", choose(KINDS, "rows"))
def test_floors_suffice_and_less_memory_fails(graph: Graph, tmp_path: Path, layout: str) -> None:
    measure, settings = KINDS[layout]
    if "samples" in {setting.name for setting in find_measure(measure).build}:
        settings = settings | {"samples": 1}
    text_options = measure_texts(graph, measure)
    direction, texts = (None, text_options["texts"]) if text_options else ("in", None)
    options = BuildOptions.checked(measure, direction, layout, settings, texts=texts)
    least = evaluate_floor(FLOORS[layout], graph, settings)

    def build(name: str, memory: float) -> dict[str, bytes]:
        with IndexBuild(graph, tmp_path / name, options, Resources(1, int(memory))) as work:
            work.estimate()
            work.run()
        return files(tmp_path / name)

    assert build("x", 1.02 * least) == build("y", 1e9)
    pattern = "links takes at least" if layout == "links" else re.escape(FLOORS[layout])
    with pytest.raises(ResourceError, match=pattern):
        build("z", 0.98 * least)
