"""NetworkX backend: ``nx.pagerank(G, backend="cocite")``, or automatic dispatch.

NetworkX loads two entry points: ``info.py`` lists the functions and imports nothing, and
``backend.py`` exports them. ``graph.py`` contains the graph class, ``convert.py`` its conversion
from and to NetworkX, and ``reading.py`` the readers and the choice of calls that NetworkX handles.

Results, arguments and exceptions are NetworkX's; docs/networkx.md lists the differences.
"""
