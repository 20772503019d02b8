"""The same ranks with any number of blocks
========================================

A graph can be processed in blocks, by a process with little memory or by the machines of a cluster.
Blocks change how much memory a process needs, but never the result: all ranks below are
bit-identical.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import cocite

with tempfile.TemporaryDirectory() as folder:
    web = cocite.generate_web(Path(folder, "web.graph"), nodes=20_000, links=160_000, seed=5)
    whole = cocite.pagerank(web)
    for blocks in (2, 4, 8):
        parts = cocite.pagerank(web, blocks=blocks)
        print(blocks, "blocks, equal:", bool((parts.values == whole.values).all()))

# %%
# PageRank in a web follows a power law: a few pages have most of the rank.

figure, axes = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
ordered = sorted(whole.values, reverse=True)
axes.loglog(range(1, len(ordered) + 1), ordered, color="#0B6E5F")
axes.set(xlabel="place", ylabel="PageRank")
plt.show()
