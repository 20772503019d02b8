"""cocite: given a page, find the related pages, from links alone.

>>> import cocite                                                       # doctest: +SKIP
>>> graph = cocite.ingest("links.tsv", "web.graph")                     # doctest: +SKIP
>>> index = cocite.build(graph, "web.index", measure="psimrank")        # doctest: +SKIP
>>> index.related("Zebra", k=20)                                        # doctest: +SKIP

Modules load on first use, so ``import cocite`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cocite.allpairs import Scores, exact_simrank
    from cocite.errors import CociteError, UnknownNode
    from cocite.evaluation import evaluate
    from cocite.evaluation.trials import TuningResult
    from cocite.evaluation.tune import tune
    from cocite.graph import Graph
    from cocite.graph.generate import generate_web
    from cocite.index.results import info, verify
    from cocite.integrations.api import related, similarity, why
    from cocite.io.ingest import ingest
    from cocite.io.opening import open_graph
    from cocite.ranking.pagerank import pagerank
    from cocite.search import Hit, Index, Score, build, merge, refresh
    from cocite.search import open_index as open
    from cocite.search.explainer import Reason, Why, WhyTogether
    from cocite.search.plan import Plan, plan_index

__version__ = "0.1.0"

_HOMES = {
    "allpairs": "Scores exact_simrank",
    "errors": "CociteError UnknownNode",
    "evaluation": "evaluate",
    "evaluation.tune": "TuningResult tune",
    "graph": "Graph",
    "graph.generate": "generate_web",
    "index.results": "info verify",
    "integrations.api": "related similarity why",
    "io.ingest": "ingest",
    "io.opening": "open_graph",
    "ranking": "pagerank",
    "search": "Hit Index Score build merge open refresh",
    "search.explainer": "Reason Why WhyTogether",
    "search.plan": "Plan plan_index",
}
"""The public names of each module."""
_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "CociteError",
    "Graph",
    "Hit",
    "Index",
    "Plan",
    "Reason",
    "Score",
    "Scores",
    "TuningResult",
    "UnknownNode",
    "Why",
    "WhyTogether",
    "__version__",
    "build",
    "evaluate",
    "exact_simrank",
    "generate_web",
    "info",
    "ingest",
    "merge",
    "open",
    "open_graph",
    "pagerank",
    "plan_index",
    "refresh",
    "related",
    "similarity",
    "tune",
    "verify",
    "why",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'cocite' has no attribute {name!r}")
    module = import_module(f"cocite.{_MODULES[name]}")
    value = getattr(module, "open_index" if name == "open" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
