"""Layouts of walks.

* ``trees``: fingerprint trees in dendrogram order
* ``packed``: the same trees, encoded as runs of nodes
* ``paths``: trees, and the nodes that walks pass through
* ``compact``: the single step that each node takes, for walks of any length
"""
