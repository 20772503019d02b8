"""The layout ``trees``: fingerprint trees in dendrogram order.

The layout ``packed``, an encoding of it: runs of nodes, in few bits, read by the same reader.

The layout ``paths``: trees, and the nodes that walks pass.

The layout ``compact``: the one step that every node takes, for walks of any length.

Shared by layouts of walks: meetings, the steps of walks, repeated walks.
"""
