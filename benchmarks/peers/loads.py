"""Read a text of links, two ids per line separated by a space, into each library's own form.

Ids are 0 to n - 1, and each occurs. Each library uses the fastest method in its manual; SciPy and
GraphBLAS have none for such texts, so polars reads them. ``start`` does all imports, and
``few_links`` is a text with which a library does everything once before the measurement, so that
one-time work is not counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cocite
from cocite import Graph


class Ours(NamedTuple):
    """A graph, and what its nodes were called: id of the text by id of ours."""

    graph: Graph
    names: NDArray[np.int64]

    def by_name(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values in the order of the text's ids."""
        found = np.empty(self.graph.nodes)
        found[self.names] = values
        return found


def start(library: str) -> None:
    """Import all libraries, which is not counted."""
    if library == "cocite":
        from cocite.kernels.links import add_counts

        add_counts(np.zeros(1, np.uint32), np.zeros(1, np.uint32))
    elif library == "networkit":
        import networkit  # noqa: F401
    elif library == "igraph":
        import igraph  # noqa: F401
    elif library == "networkx":
        import networkx
        import scipy.sparse

        networkx.to_scipy_sparse_array(networkx.path_graph(3))
        assert scipy.sparse
    elif library == "scikit-network":
        import sknetwork.ranking  # noqa: F401
    elif library == "graphblas":
        import graphblas
        import polars

        graphblas.Matrix.from_coo([0], [0], [1.0])
    else:
        import polars  # noqa: F401
        import scipy.sparse


def few_links(folder: Path) -> Path:
    """A text of a hundred pages."""
    file = folder / "few.txt"
    file.write_text("".join(f"{a} {b}\n" for a in range(100) for b in ((a + 1) % 100, a // 2)))
    return file


def load_cocite(file: Path) -> Ours:
    """A stored graph, with names and checksums, on disk. Names that are 0 to n - 1 are its ids."""
    graph = cocite.ingest(file, file.with_suffix(".graph"), overwrite=True)
    if graph.store.facts["names"] == "dense":
        return Ours(graph, np.arange(graph.nodes))
    everyone = np.arange(graph.nodes, dtype=np.uint32)
    return Ours(graph, np.array(list(map(int, graph.names.names(everyone)))))


def load_igraph(file: Path) -> Any:
    import igraph

    return igraph.Graph.Read_Edgelist(str(file), directed=True)


def _columns(file: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    import polars

    frame = polars.read_csv(
        file, has_header=False, separator=" ", schema={"a": polars.Int32, "b": polars.Int32}
    )
    return frame["a"].to_numpy(), frame["b"].to_numpy()


def load_scipy(file: Path) -> Any:
    """Links by target: 1 where the column links to the row."""
    import scipy.sparse

    sources, targets = _columns(file)
    n = int(max(sources.max(), targets.max())) + 1
    ones = np.ones(sources.size)
    return scipy.sparse.csr_array((ones, (targets, sources)), shape=(n, n))


def load_graphblas(file: Path) -> Any:
    """The same."""
    import graphblas

    sources, targets = _columns(file)
    n = int(max(sources.max(), targets.max())) + 1
    return graphblas.Matrix.from_coo(targets, sources, 1.0, nrows=n, ncols=n, dtype=float)


def load_networkit(file: Path) -> Any:
    import networkit

    return networkit.graphio.EdgeListReader(" ", 0, directed=True).read(str(file))


def load_networkx(file: Path) -> Any:
    import networkx

    return networkx.read_edgelist(file, create_using=networkx.DiGraph, nodetype=int)


def load_scikit_network(file: Path) -> Any:
    """Its matrix has a link in the row of its source."""
    from sknetwork.data import from_csv

    return from_csv(str(file), delimiter=" ", directed=True, matrix_only=True, reindex=False)
