"""What a question brings into the system's cache: of an index, and of a graph, little.

Pages are counted with ``mincore``, after the files were dropped from the cache. Where the system
keeps them, or does not tell, there is nothing to count.
"""

import gc
import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from benchmarks.cold import cached, drop, pages, runs

import cocite
from cocite import Graph
from cocite.graph.generate import generate_web
from cocite.search.batch.run import Batch
from cocite.storage import Access, Store, advise

NODES, SAMPLES = 40_000, 30
A_SAMPLE = 8
"""Pages that a question may read of a sample: a place, labels and members around it, and more where
they go over the end of a page."""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cold") / "g"
    generate_web(path, nodes=NODES, links=8 * NODES, seed=3)
    return path


@pytest.fixture(scope="module")
def index(graph: Path) -> Path:
    cocite.build(Graph.open(graph), graph.with_name("i"), samples=SAMPLES, measure="psimrank")
    return graph.with_name("i")


def come(folder: Path, work: Callable[[], None]) -> int:
    """How many pages of a folder come into the cache while ``work`` is done."""
    gc.collect()  # nobody has it mapped
    try:
        drop(folder)
        before = cached(folder)
    except (AttributeError, OSError) as error:
        pytest.skip(f"the system does not tell what it has in its cache: {error}")
    if before:
        pytest.skip(f"the system keeps {before} pages of {folder} in its cache")
    work()
    return cached(folder)


def opened(index: Path) -> cocite.Index:
    """As a large one is: of a small one files are compared with their checksums."""
    return cocite.open(index, verify=False)


def ask(index: Path) -> None:
    opened(index).related(opened(index).nodes.name(NODES // 3))


def test_a_question_reads_a_few_pages_of_a_sample(index: Path) -> None:
    ask(index)  # kernels are compiled
    read = come(index, lambda: ask(index))
    assert 0 < read <= A_SAMPLE * SAMPLES < pages(index) / 4


def test_question_touches_one_run_of_pages_a_sample(index: Path) -> None:
    """And one for the positions of each node, and one for the counts of members."""
    nodes = opened(index).nodes.names(np.array([5, 30_000]))

    def pair() -> None:
        opened(index).similarity(*nodes)

    pair()
    assert 0 < come(index, pair) <= A_SAMPLE * SAMPLES
    assert runs(index, "in.") <= SAMPLES + 3
    come(index, lambda: ask(index))
    assert runs(index, "in.") <= SAMPLES + 2


def test_batch_reads_ahead(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Access] = []
    monkeypatch.setattr(Store, "advise", lambda _, how: given.append(how))
    for count, memory in ((100, "1TB"), (3, "1TB"), (100, "1kB")):
        opened = cocite.open(index, memory=memory)
        given.clear()
        nodes = opened.nodes.names(np.arange(count))
        with Batch(opened, tmp_path / f"{count}{memory}.csv", 5, nodes=nodes, ids=True) as work:
            work.run()
        around = (count, memory) == (100, "1TB")
        assert given == [Access.AROUND if around else Access.SCATTERED]


def test_a_sketch_is_read_through(graph: Path) -> None:
    path = graph.with_name("s")
    cocite.build(Graph.open(graph), path, measure="xjaccard", bits=2, samples=64)
    ask(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    read = come(path, lambda: ask(path))
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before
    assert read > pages(path) / 2  # nearly all of it, so pages come with others
    assert faults < read / 4


def test_why_reads_a_few_rows_of_the_graph(graph: Path, index: Path) -> None:
    opened = cocite.open(index)
    first = opened.nodes.name(NODES // 3)
    second = opened.related(first)[0].node

    def why() -> None:
        cocite.open(index).why(first, second)

    del opened
    why()
    assert 0 < come(graph, why) <= pages(graph) / 4


def test_advice_changes_nothing_that_is_read(index: Path) -> None:
    opened = cocite.open(index)
    name = opened.nodes.name(7)
    before = opened.related(name)
    for access in Access:
        opened.stored.store.advise(access)
        assert opened.related(name) == before


def test_an_array_in_memory_takes_no_advice() -> None:
    array = np.arange(5)
    advise(Access.SCATTERED, array, array[1:2], np.empty(0, np.uint8))
    assert array.tolist() == [0, 1, 2, 3, 4]
