"""Batches: the related nodes of many nodes, written to a file, a database, or a pipe."""
