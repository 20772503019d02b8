"""The least memory that `cocite measures` tells: it suffices, and less is refused."""

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
from tests.conftest import of_texts, words_of

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


def told(text: str, graph: Graph, settings: dict[str, Any]) -> float:
    """The value of a formula: names beside each other are multiplied."""
    links = 8 * graph.nodes + 4 * graph.edges
    known = {"n": graph.nodes, "m": graph.edges, "L": links, "MiB": MIB, "max": max, "min": min}
    formula = re.search(r"block is (.*?); rows", FLOOR_WORDS)
    assert formula is not None
    block = eval(product(formula[1]), known)
    known["w"], known["b"] = different_words(graph), (graph.nodes - 1).bit_length()
    known |= settings | {
        "block": block,
        "s": min(settings.get("samples", 16), 16),
        "rows": min(settings.get("radius", 0), 8),
    }
    return float(eval(product(text), known))


def different_words(graph: Graph) -> int:
    """In the texts that measures of texts are given."""
    return len(set(words_of(graph).read_text().split()) - set(graph.names))


def product(text: str) -> str:
    return re.sub(r"(?<=[\w)]) (?=[\w(])", " * ", text)


def test_every_layout_has_a_floor() -> None:
    assert FLOORS.keys() == LAYOUTS.keys() == KINDS.keys()


@pytest.mark.parametrize("layout", KINDS)
def test_least_memory_suffices_and_less_fails(graph: Graph, tmp_path: Path, layout: str) -> None:
    measure, settings = KINDS[layout]
    if "samples" in {setting.name for setting in find_measure(measure).build}:
        settings = settings | {"samples": 1}
    compared = of_texts(graph, measure)
    way, texts = (None, compared["texts"]) if compared else ("in", None)
    options = BuildOptions.checked(measure, way, layout, settings, texts=texts)
    least = told(FLOORS[layout], graph, settings)

    def build(name: str, memory: float) -> dict[str, bytes]:
        with IndexBuild(graph, tmp_path / name, options, Resources(1, int(memory))) as work:
            work.estimate()
            work.run()
        return files(tmp_path / name)

    assert build("x", 1.02 * least) == build("y", 1e9)
    words = "links takes at least" if layout == "links" else re.escape(FLOORS[layout])
    with pytest.raises(ResourceError, match=words):
        build("z", 0.98 * least)
