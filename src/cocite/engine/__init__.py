"""Passes over a stored graph: walks, scans, and the diagonal of linearized SimRank."""
