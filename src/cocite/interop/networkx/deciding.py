"""Which calls are left to NetworkX, and why: those whose arguments the backend does not take, and
those that it would be slower at.

NetworkX asks ``can_run`` before any call, and ``should_run`` as well unless the backend was named;
what they say instead of True is in its log (``logging.getLogger("networkx")``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx

from cocite.interop.networkx.graph import BackendGraph
from cocite.interop.networkx.info import FUNCTIONS
from cocite.interop.networkx.reading import KINDS

__all__ = ["OLDEST", "can_run", "should_run"]

OLDEST = (3, 6)
_SMALL = 2_000
"""Links below which converting a graph, and loading compiled kernels, take longer than NetworkX."""
_SMALL_NODES = 100
"""The same of functions that have a matrix of all pairs in NetworkX."""
_ALL_PAIRS = (
    "simrank_similarity",
    "panther_similarity",
    "panther_vector_similarity",
    "generate_random_paths",
)


def can_run(name: str, args: Any, kwargs: Any) -> bool | str:
    """True, or why not."""
    if name not in FUNCTIONS:
        return "cocite does not have it"
    version = tuple(int(part) for part in nx.__version__.split(".")[:2])
    if version < OLDEST:
        return f"cocite speaks for NetworkX 3.6 and later, this is {nx.__version__}"
    reason = _REASONS.get(name)
    try:
        return True if reason is None else reason(*args, **kwargs) or True
    except (TypeError, AttributeError):
        return True  # the call itself is wrong, and says so


def should_run(name: str, args: Any, kwargs: Any) -> bool | str:
    """True, or why not: a graph that is small, and not converted yet."""
    graph = args[0] if args else kwargs.get("G")
    if not isinstance(graph, nx.Graph) or isinstance(graph, BackendGraph):
        return True
    if "cocite" in getattr(graph, "__networkx_cache__", {}).get("backends", {}):
        return True
    if name in _ALL_PAIRS:
        few, what, have = _SMALL_NODES, "nodes", graph.number_of_nodes()
    else:
        few, what, have = _SMALL, "edges", graph.number_of_edges()
    if have >= few:
        return True
    return f"the graph has {have:,} {what}: below {few:,} NetworkX is as fast"


def _nstart(G: Any, *args: Any, nstart: Any = None, **options: Any) -> str:
    if nstart is None or (len(nstart) == len(G) and all(node in G for node in nstart)):
        return ""
    return "nstart has another value than one for each node"


def _eigenvector(
    G: Any, max_iter: Any = None, tol: Any = None, nstart: Any = None, weight: Any = None
) -> str:
    return _nstart(G, nstart=nstart)


def _katz(
    G: Any,
    alpha: Any = None,
    beta: Any = None,
    max_iter: Any = None,
    tol: Any = None,
    nstart: Any = None,
    normalized: Any = None,
    weight: Any = None,
) -> str:
    return _nstart(G, nstart=nstart)


def _kind(create_using: Any) -> str:
    if create_using is None or (isinstance(create_using, type) and create_using in KINDS):
        return ""
    return "create_using is none of the four plain classes of graphs"


def _read_edgelist(
    path: Any, comments: Any = None, delimiter: Any = None, create_using: Any = None, *rest: Any,
    **options: Any,
) -> str:  # fmt: skip
    return _kind(create_using)


def _from_scipy(
    A: Any, parallel_edges: Any = None, create_using: Any = None, edge_attribute: Any = None
) -> str:
    if A.dtype.kind not in "biuf":
        return f"the matrix holds {A.dtype}, and no real numbers"
    return _kind(create_using)


def _from_pandas(
    df: Any,
    source: Any = None,
    target: Any = None,
    edge_attr: Any = None,
    create_using: Any = None,
    edge_key: Any = None,
) -> str:
    if edge_key is not None:
        return "edge_key names parallel links, and the backend numbers them"
    return _kind(create_using)


_REASONS: dict[str, Callable[..., str]] = {
    "eigenvector_centrality": _eigenvector,
    "katz_centrality": _katz,
    "read_edgelist": _read_edgelist,
    "from_scipy_sparse_array": _from_scipy,
    "from_pandas_edgelist": _from_pandas,
}
