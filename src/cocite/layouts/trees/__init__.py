"""The layout ``trees``: fingerprint trees in dendrogram order."""
