"""The backend of NetworkX: ``nx.pagerank(G, backend="cocite")``, and programs that know nothing of
it.

NetworkX finds it by its entry points: ``info.py`` tells what there is, and imports nothing;
``backend.py`` is what NetworkX calls. The graph is ``graph.py``; conversions, ``converting.py``,
readers, ``making.py`` and ``reading.py``; functions, a file a subject; when they are left to
NetworkX, ``deciding.py``.

Results, arguments and exceptions are NetworkX's: docs/networkx.md tells what differs.
"""
