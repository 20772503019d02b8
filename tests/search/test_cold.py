"""Cold queries load few pages of an index or a graph into the page cache.

Pages are counted with ``mincore``, after the files were dropped from the cache. Tests are skipped
where the system keeps the files cached, or does not report it.
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
PAGES_PER_SAMPLE = 8
"""Pages that a query may read per sample: a position, its labels and members, and one more for each
that crosses a page boundary."""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cold") / "g"
    generate_web(path, nodes=NODES, links=8 * NODES, seed=3)
    return path


@pytest.fixture(scope="module")
def index(graph: Path) -> Path:
    cocite.build(Graph.open(graph), graph.with_name("i"), samples=SAMPLES, measure="psimrank")
    return graph.with_name("i")


def pages_loaded(folder: Path, work: Callable[[], None]) -> int:
    """The number of pages of a folder that ``work`` loads into the cache."""
    gc.collect()  # nothing keeps the files mapped
    try:
        drop(folder)
        remaining = cached(folder)
    except (AttributeError, OSError) as error:
        pytest.skip(f"the system does not tell what it has in its cache: {error}")
    if remaining:
        pytest.skip(f"the system keeps {remaining} pages of {folder} in its cache")
    work()
    return cached(folder)


def open_unverified(index: Path) -> cocite.Index:
    """Open without verification, like a large index; small ones are verified in full."""
    return cocite.open(index, verify=False)


def query(index: Path) -> None:
    open_unverified(index).related(open_unverified(index).nodes.name(NODES // 3))


def test_related_reads_few_file_pages_per_sample(index: Path) -> None:
    query(index)  # compile the kernels
    loaded = pages_loaded(index, lambda: query(index))
    assert 0 < loaded <= PAGES_PER_SAMPLE * SAMPLES < pages(index) / 4


def test_similarity_reads_one_page_run_per_sample(index: Path) -> None:
    """Plus one run for the positions of each node, and one for the member counts."""
    nodes = open_unverified(index).nodes.names(np.array([5, 30_000]))

    def pair() -> None:
        open_unverified(index).similarity(*nodes)

    pair()
    assert 0 < pages_loaded(index, pair) <= PAGES_PER_SAMPLE * SAMPLES
    assert runs(index, "in.") <= SAMPLES + 3
    pages_loaded(index, lambda: query(index))
    assert runs(index, "in.") <= SAMPLES + 2


def test_batch_reads_ahead(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    advice: list[Access] = []
    monkeypatch.setattr(Store, "advise", lambda _, access: advice.append(access))
    for count, memory in ((100, "1TB"), (3, "1TB"), (100, "1kB")):
        opened = cocite.open(index, memory=memory)
        advice.clear()
        nodes = opened.nodes.names(np.arange(count))
        with Batch(opened, tmp_path / f"{count}{memory}.csv", 5, nodes=nodes, ids=True) as batch:
            batch.run()
        read_ahead = (count, memory) == (100, "1TB")
        assert advice == [Access.AROUND if read_ahead else Access.SCATTERED]


def test_sketch_layout_is_read_sequentially(graph: Path) -> None:
    path = graph.with_name("s")
    cocite.build(Graph.open(graph), path, measure="xjaccard", bits=2, samples=64)
    query(path)
    faults_before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    loaded = pages_loaded(path, lambda: query(path))
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - faults_before
    assert loaded > pages(path) / 2  # nearly all of it, thanks to read-ahead
    assert faults < loaded / 4


def test_why_reads_few_graph_rows(graph: Path, index: Path) -> None:
    opened = cocite.open(index)
    first = opened.nodes.name(NODES // 3)
    second = opened.related(first)[0].node

    def why() -> None:
        cocite.open(index).why(first, second)

    del opened
    why()
    assert 0 < pages_loaded(graph, why) <= pages(graph) / 4


def test_store_advise_keeps_results(index: Path) -> None:
    opened = cocite.open(index)
    name = opened.nodes.name(7)
    before = opened.related(name)
    for access in Access:
        opened.stored.store.advise(access)
        assert opened.related(name) == before


def test_advise_ignores_arrays_in_memory() -> None:
    array = np.arange(5)
    advise(Access.SCATTERED, array, array[1:2], np.empty(0, np.uint8))
    assert array.tolist() == [0, 1, 2, 3, 4]
