"""What NetworkX calls, by its entry point ``networkx.backends``: an attribute a function."""

from __future__ import annotations

from typing import Any

from cocite.interop.networkx.centrality import eigenvector_centrality, katz_centrality, pagerank
from cocite.interop.networkx.converting import convert_from_nx, convert_to_nx
from cocite.interop.networkx.deciding import can_run, should_run
from cocite.interop.networkx.matrices import birank, hits, to_scipy_sparse_array
from cocite.interop.networkx.panther import (
    generate_random_paths,
    panther_similarity,
    panther_vector_similarity,
)
from cocite.interop.networkx.predictions import (
    adamic_adar_index,
    common_neighbor_centrality,
    jaccard_coefficient,
    preferential_attachment,
    resource_allocation_index,
)
from cocite.interop.networkx.reading import (
    from_pandas_edgelist,
    from_scipy_sparse_array,
    read_edgelist,
)
from cocite.interop.networkx.simrank import simrank_similarity

__all__ = [
    "adamic_adar_index",
    "birank",
    "can_run",
    "common_neighbor_centrality",
    "convert_from_nx",
    "convert_to_nx",
    "eigenvector_centrality",
    "from_pandas_edgelist",
    "from_scipy_sparse_array",
    "generate_random_paths",
    "hits",
    "jaccard_coefficient",
    "katz_centrality",
    "on_start_tests",
    "pagerank",
    "panther_similarity",
    "panther_vector_similarity",
    "preferential_attachment",
    "read_edgelist",
    "resource_allocation_index",
    "should_run",
    "simrank_similarity",
    "to_scipy_sparse_array",
]


def on_start_tests(items: Any) -> None:
    """Called by NetworkX's tests before they run with the backend: none is marked."""
