"""cocite compared with other libraries: ``python -m benchmarks.peers``, ``make bench-peers``.

A *task* (``tasks.py``) is a computation such as PageRank, SimRank, Jaccard coefficients, or nearest
pages by an embedding. A *library* implements it with two functions (``ranking.py``, ``walks.py``,
``pairs.py``, ``nearest.py``): one reads a text file of links into the library's own form, and one
solves the task. Every run is a process (``worker.py``). Runs of a library and of cocite alternate
(``turns.py``), and results are ratios. Libraries that are not installed are reported with the
command that installs them.
"""
