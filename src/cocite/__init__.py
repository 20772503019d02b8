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
    from cocite.search import open_index as open
    from cocite.search import refresh as refresh
    from cocite.search.explainer import Reason as Reason
    from cocite.search.explainer import Why as Why
    from cocite.search.explainer import WhyTogether as WhyTogether
    from cocite.search.plan import Plan as Plan
    from cocite.search.plan import plan_index as plan_index

__version__ = "0.1.0"

_HOMES = {
    "CociteError": ("cocite.errors", "CociteError"),
    "Graph": ("cocite.graph", "Graph"),
    "Hit": ("cocite.search", "Hit"),
    "Index": ("cocite.search", "Index"),
    "Plan": ("cocite.search.plan", "Plan"),
    "Reason": ("cocite.search.explainer", "Reason"),
    "Score": ("cocite.search", "Score"),
    "Scores": ("cocite.allpairs", "Scores"),
    "TuningResult": ("cocite.evaluation.tune", "TuningResult"),
    "UnknownNode": ("cocite.errors", "UnknownNode"),
    "Why": ("cocite.search.explainer", "Why"),
    "WhyTogether": ("cocite.search.explainer", "WhyTogether"),
    "build": ("cocite.search", "build"),
    "evaluate": ("cocite.evaluation", "evaluate"),
    "exact_simrank": ("cocite.allpairs", "exact_simrank"),
    "generate_web": ("cocite.graph.generate", "generate_web"),
    "info": ("cocite.index.results", "info"),
    "ingest": ("cocite.io.ingest", "ingest"),
    "merge": ("cocite.search", "merge"),
    "open": ("cocite.search", "open_index"),
    "open_graph": ("cocite.io.opening", "open_graph"),
    "pagerank": ("cocite.ranking", "pagerank"),
    "plan_index": ("cocite.search.plan", "plan_index"),
    "refresh": ("cocite.search", "refresh"),
    "related": ("cocite.integrations.api", "related"),
    "similarity": ("cocite.integrations.api", "similarity"),
    "tune": ("cocite.evaluation.tune", "tune"),
    "verify": ("cocite.index.results", "verify"),
    "why": ("cocite.integrations.api", "why"),
}

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
    try:
        module, attribute = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module 'cocite' has no attribute {name!r}") from None
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
