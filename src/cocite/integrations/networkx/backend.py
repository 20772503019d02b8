"""Entry point ``networkx.backends``: the functions that NetworkX dispatches to."""

# ruff: noqa: F401 - NetworkX looks up these names
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
    adjacency_matrix,
    biadjacency_matrix,
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


def on_start_tests(items: Any) -> None:
    """Mark no tests; NetworkX requires this hook to test a backend."""
