"""NetworkX backend: ``nx.pagerank(G, backend="cocite")``, or automatic dispatch.

NetworkX loads two entry points: ``info.py`` lists the functions and imports nothing, and
``backend.py`` exports them. ``graph.py`` is the graph class; ``convert.py`` converts from and to
NetworkX; ``reading.py`` contains readers, and decides which calls NetworkX handles.

Results, arguments and exceptions are NetworkX's; docs/networkx.md lists the differences.
"""
