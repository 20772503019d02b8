"""Backend information, which NetworkX loads on import, so this module imports nothing."""

from __future__ import annotations

from typing import Any

_SAME = "Results are equal to NetworkX's up to rounding."
FUNCTIONS = {
    "pagerank": _SAME,
    "adjacency_matrix": "The same matrix.",
    "biadjacency_matrix": "The same matrix.",
    "hits": "ARPACK, as in NetworkX, on a matrix built from arrays.",
    "simrank_similarity": f"{_SAME} The scores of all pairs must fit in memory, as in NetworkX.",
    "jaccard_coefficient": _SAME,
    "adamic_adar_index": _SAME,
    "resource_allocation_index": _SAME,
    "preferential_attachment": _SAME,
    "common_neighbor_centrality": f"{_SAME} Distances are computed only from the first node of "
    "each pair.",
    "eigenvector_centrality": f"{_SAME} `nstart` must have a value for each node.",
    "katz_centrality": f"{_SAME} `nstart` must have a value for each node.",
    "birank": _SAME,
    "to_scipy_sparse_array": "The same matrix.",
    "read_edgelist": "`create_using` must be Graph, DiGraph, MultiGraph or MultiDiGraph.",
    "from_scipy_sparse_array": "`create_using` must be a class, as for `read_edgelist`.",
    "from_pandas_edgelist": "`create_using` must be a class, as for `read_edgelist`. `edge_key` is "
    "not supported.",
}
"""Functions of the backend, with notes that NetworkX's documentation shows."""


def get_info() -> dict[str, Any]:
    """Return the information for NetworkX's entry point ``networkx.backend_info``."""
    return {
        "backend_name": "cocite",
        "project": "cocite",
        "package": "cocite",
        "short_summary": "Link analysis, similarity and link prediction on arrays.",
        "default_config": {},
        "functions": {name: {"additional_docs": docs} for name, docs in FUNCTIONS.items()},
    }
