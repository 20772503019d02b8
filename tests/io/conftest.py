"""Graphs of these tests are ingested, as those of ``tests/graph`` are."""

from tests.graph.conftest import every_graph_is_ingested

__all__ = ["every_graph_is_ingested"]
