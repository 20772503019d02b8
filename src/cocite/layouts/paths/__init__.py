"""The layout ``paths``: trees, and the nodes that walks pass."""
