"""Layouts of min-hashes.

* ``minhash``: nodes grouped by the winner of each ring
* ``sketch``: some bits of a hash of each winner
"""
