"""The layout ``minhash``: nodes grouped by the winner of each ring.

The layout ``sketch``: some bits of a hash of each winner.

Shared by layouts of min-hashes: winners of rings, 16 samples at a time, and their matches.
"""
