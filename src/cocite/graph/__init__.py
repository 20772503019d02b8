"""The stored graph: from files of links to compressed sparse rows of in-links.

``cocite.io.ingest`` is imported by those who ingest only: it brings its readers along.
"""

from cocite.graph.graph import Graph

__all__ = ["Graph"]
