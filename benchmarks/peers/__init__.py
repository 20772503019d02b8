"""cocite beside other libraries, in turns: ``python -m benchmarks.peers``, ``make bench-peers``.

A *task* (``tasks.py``) is something that a user wants: PageRank, SimRank, Jaccard coefficients,
nearest pages by an embedding. A *library* does it by two functions (``ranking.py``, ``walks.py``,
``pairs.py``, ``nearest.py``): one that reads a text of links into the library's own form, and one
that solves. Every run is a process of its own (``worker.py``), a library's and ours by turns
(``turns.py``), and what is told are ratios. Libraries are optional: what is not installed is named
with the command that installs it.
"""
