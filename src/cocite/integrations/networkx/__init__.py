"""A backend of NetworkX: ``nx.pagerank(G, backend="cocite")``, or by automatic dispatch.

NetworkX finds it by two entry points: ``info.py``, which imports nothing, lists its functions, and
``backend.py`` has them. ``graph.py`` is its graph, ``convert.py`` converts it, and ``reading.py``
has readers, and decides which calls are left to NetworkX.

Results, arguments and exceptions are NetworkX's; docs/networkx.md lists the differences.
"""
