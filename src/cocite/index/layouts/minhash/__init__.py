"""Layouts of min-hashes.

* ``minhash``: nodes grouped by their min-hash value (*winner*) in each ring
* ``sketch``: some bits of a hash of each winner
"""
