"""cocite: given a page, find the related pages, from links alone.

>>> import cocite                                                       # doctest: +SKIP
>>> graph = cocite.ingest("links.tsv", "web.graph")                     # doctest: +SKIP
>>> index = cocite.build(graph, "web.index", measure="psimrank")        # doctest: +SKIP
>>> index.related("Zebra", k=20)                                        # doctest: +SKIP

Names are imported when they are first used, so that ``import cocite`` costs next to nothing.
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
    from cocite.graph import Graph as Graph
    from cocite.graph.generate import generate_web as generate_web
    from cocite.graph.ingest import ingest as ingest
    from cocite.index.told import info as info
    from cocite.index.told import verify as verify
    from cocite.interop.asking import related as related
    from cocite.interop.asking import similarity as similarity
    from cocite.interop.asking import why as why
    from cocite.query import Hit as Hit
    from cocite.query import Index as Index
    from cocite.query import Score as Score
    from cocite.query import build as build
    from cocite.query import merge as merge
    from cocite.query import open_graph as open_graph
    from cocite.query import open_index as open
    from cocite.query import refresh as refresh
    from cocite.query.plan.plan import Plan as Plan
    from cocite.query.plan.plan import plan_index as plan_index
    from cocite.query.why import Reason as Reason
    from cocite.query.why import Why as Why
    from cocite.query.why import WhyTogether as WhyTogether
    from cocite.ranking.pagerank import pagerank as pagerank
    from cocite.tuning import Tuned as Tuned
    from cocite.tuning import tune as tune

__version__ = "0.1.0"

_HOMES = {
    "CociteError": ("cocite.errors", "CociteError"),
    "Graph": ("cocite.graph", "Graph"),
    "Hit": ("cocite.query", "Hit"),
    "Index": ("cocite.query", "Index"),
    "Plan": ("cocite.query.plan.plan", "Plan"),
    "Reason": ("cocite.query.why", "Reason"),
    "Score": ("cocite.query", "Score"),
    "Scores": ("cocite.allpairs", "Scores"),
    "Tuned": ("cocite.tuning", "Tuned"),
    "UnknownNode": ("cocite.errors", "UnknownNode"),
    "Why": ("cocite.query.why", "Why"),
    "WhyTogether": ("cocite.query.why", "WhyTogether"),
    "build": ("cocite.query", "build"),
    "evaluate": ("cocite.evaluation", "evaluate"),
    "exact_simrank": ("cocite.allpairs", "exact_simrank"),
    "generate_web": ("cocite.graph.generate", "generate_web"),
    "info": ("cocite.index.told", "info"),
    "ingest": ("cocite.graph.ingest", "ingest"),
    "merge": ("cocite.query", "merge"),
    "open": ("cocite.query", "open_index"),
    "open_graph": ("cocite.query", "open_graph"),
    "pagerank": ("cocite.ranking", "pagerank"),
    "plan_index": ("cocite.query.plan.plan", "plan_index"),
    "refresh": ("cocite.query", "refresh"),
    "related": ("cocite.interop.asking", "related"),
    "similarity": ("cocite.interop.asking", "similarity"),
    "tune": ("cocite.tuning", "tune"),
    "verify": ("cocite.index.told", "verify"),
    "why": ("cocite.interop.asking", "why"),
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
    "Tuned",
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
