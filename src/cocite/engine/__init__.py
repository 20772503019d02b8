"""Algorithms that pass over a graph's links: walks, scans, and the SimRank diagonal."""
