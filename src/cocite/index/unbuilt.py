"""A stored graph in the place of an index: what an index would say of itself, without its files.

Samples of walks are drawn when they are asked for (``layouts/drawn``). Parts that read links take
them from the graph, turned round and summed up when they are first needed. Both answer as the index
would that nobody built. It is never written.
"""

from __future__ import annotations

from typing import Any

from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.index.plan import BuildOptions
from cocite.index.stored import StoredIndex
from cocite.layouts.drawn.part import Ends, UnbuiltPart
from cocite.layouts.freshness import Freshness, Generation
from cocite.layouts.plan import PartPlan
from cocite.means import Means

__all__ = ["UnbuiltIndex", "index_needed"]


class UnbuiltIndex(StoredIndex):
    """The index of ``options`` that nobody built."""

    def __init__(self, graph: Graph, options: BuildOptions, means: Means) -> None:
        """Raises :class:`UsageError` for a measure whose answers need an index."""
        self.store, self.nodes = graph.store, graph.nodes
        self.measure, self.direction = options.measure, options.direction
        self.settings = options.settings
        self.graph = {"name": graph.path.name, "digest": graph.digest, "path": "."}
        self.graph["edges"] = graph.edges
        self.refined: dict[str, Any] = {}
        self.by, self.asks = options.by, dict(options.asks)
        ends, samples = Ends(graph, means), options.samples or 0
        told = graph.path.name, graph.digest, None, "."
        self.freshness = Freshness((Generation(0, 0, samples, *told),))
        self.parts = tuple(
            UnbuiltPart(
                graph.store,
                graph.nodes,
                plan.measure,
                plan.direction,
                _layout(graph, plan, options.measure.name),
                plan.settings,
                plan.weight,
                self.freshness,
                None,
                plan.weighted,
                plan.label,
                plan.number,
                plan.fixed,
                ends=ends,
            )
            for plan in options.parts
        )


def _layout(graph: Graph, plan: PartPlan, name: str) -> str:
    """How a part is read; ``name`` is the measure of the whole."""
    if plan.measure.needs_index:
        raise index_needed(graph, name)
    return plan.layout


def index_needed(graph: Graph, name: str, texts: bool = False) -> UsageError:
    """What to raise for a measure that a graph alone cannot answer by; ``texts`` if it compares
    some.
    """
    more = " --texts FOLDER" * texts
    return UsageError(
        f"{name} needs an index: cocite index {graph.path} --measure {name}{more} -o DIR; then ask "
        "that"
    )
