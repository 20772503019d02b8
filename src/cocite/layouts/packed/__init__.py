"""The layout ``packed``: fingerprint trees as runs of nodes, in few bits."""
