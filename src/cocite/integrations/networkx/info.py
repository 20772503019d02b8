"""Information on the backend that NetworkX reads on import; so this file imports nothing."""

from __future__ import annotations

from typing import Any

_SAME = "Results are NetworkX's, but for the rounding of sums."
FUNCTIONS = {
    "pagerank": _SAME,
    "adjacency_matrix": "The same matrix.",
    "biadjacency_matrix": "The same matrix.",
    "hits": "ARPACK, as in NetworkX, on a matrix that is made of arrays.",
    "simrank_similarity": f"{_SAME} Scores of all pairs have to fit in memory, as there.",
    "jaccard_coefficient": _SAME,
    "adamic_adar_index": _SAME,
    "resource_allocation_index": _SAME,
    "preferential_attachment": _SAME,
    "common_neighbor_centrality": f"{_SAME} Searches from the nodes that pairs begin with, and not "
    "from all.",
    "eigenvector_centrality": f"{_SAME} `nstart` has a value for each node.",
    "katz_centrality": f"{_SAME} `nstart` has a value for each node.",
    "birank": _SAME,
    "to_scipy_sparse_array": "The same matrix.",
    "read_edgelist": "`create_using` is a class: Graph, DiGraph, MultiGraph, MultiDiGraph.",
    "from_scipy_sparse_array": "`create_using` is a class, as for `read_edgelist`.",
    "from_pandas_edgelist": "`create_using` is a class, as there; without `edge_key`.",
}
"""Functions of the backend, with notes for NetworkX's documentation."""


def get_info() -> dict[str, Any]:
    """Return the information for NetworkX's entry point ``networkx.backend_info``."""
    return {
        "backend_name": "cocite",
        "project": "cocite",
        "package": "cocite",
        "short_summary": "Link analysis, similarity and link prediction on arrays.",
        "default_config": {},
        "functions": {name: {"additional_docs": told} for name, told in FUNCTIONS.items()},
    }
