"""What NetworkX calls, by its entry point ``networkx.backends``: an attribute a function."""

from __future__ import annotations

from typing import Any

from cocite.integrations.networkx.algorithms import (
    adamic_adar_index,
    common_neighbor_centrality,
    jaccard_coefficient,
    preferential_attachment,
    resource_allocation_index,
    simrank_similarity,
)
from cocite.integrations.networkx.centrality import (
    birank,
    eigenvector_centrality,
    hits,
    katz_centrality,
    pagerank,
    to_scipy_sparse_array,
)
from cocite.integrations.networkx.convert import convert_from_nx, convert_to_nx
from cocite.integrations.networkx.reading import (
    can_run,
    from_pandas_edgelist,
    from_scipy_sparse_array,
    read_edgelist,
    should_run,
)

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
    "hits",
    "jaccard_coefficient",
    "katz_centrality",
    "on_start_tests",
    "pagerank",
    "preferential_attachment",
    "read_edgelist",
    "resource_allocation_index",
    "should_run",
    "simrank_similarity",
    "to_scipy_sparse_array",
]


def on_start_tests(items: Any) -> None:
    """Do nothing: NetworkX calls it before testing the backend, to mark tests."""
