"""The backend of NetworkX: ``nx.pagerank(G, backend="cocite")``, and programs that know nothing of
it.

NetworkX finds it by its entry points: ``integrations/networkx/info.py`` tells what there is, and
imports nothing; ``integrations/networkx/backend.py`` is what NetworkX calls. The graph is
``integrations/networkx/graph.py``; conversions, ``integrations/networkx/convert.py``, readers,
``integrations/networkx/convert.py`` and ``integrations/networkx/reading.py``; functions, a file a
subject; when they are left to NetworkX, ``integrations/networkx/reading.py``.

Results, arguments and exceptions are NetworkX's: docs/networkx.md tells what differs.
"""
