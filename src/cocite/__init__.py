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
    from cocite.allpairs import Scores as Scores
    from cocite.allpairs import exact_simrank as exact_simrank
    from cocite.errors import CociteError as CociteError
    from cocite.errors import UnknownNode as UnknownNode
    from cocite.evaluation import evaluate as evaluate
    from cocite.evaluation.trials import TuningResult as TuningResult
    from cocite.evaluation.tune import tune as tune
    from cocite.graph import Graph as Graph
    from cocite.graph.generate import generate_web as generate_web
    from cocite.index.results import info as info
    from cocite.index.results import verify as verify
    from cocite.integrations.api import related as related
    from cocite.integrations.api import similarity as similarity
    from cocite.integrations.api import why as why
    from cocite.io.ingest import ingest as ingest
    from cocite.io.opening import open_graph as open_graph
    from cocite.ranking.pagerank import pagerank as pagerank
    from cocite.search import Hit as Hit
    from cocite.search import Index as Index
    from cocite.search import Score as Score
    from cocite.search import build as build
    from cocite.search import merge as merge
    from cocite.search import open_index as open  # noqa: F401 - a public name
    from cocite.search import refresh as refresh
    from cocite.search.explainer import Reason as Reason
    from cocite.search.explainer import Why as Why
    from cocite.search.explainer import WhyTogether as WhyTogether
    from cocite.search.plan import Plan as Plan
    from cocite.search.plan import plan_index as plan_index

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

__all__ = sorted(["__version__", *_MODULES])  # noqa: PLE0605 - a list


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'cocite' has no attribute {name!r}")
    module = import_module(f"cocite.{_MODULES[name]}")
    value = getattr(module, "open_index" if name == "open" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
