"""Any memory, the same bytes
==========================

A graph can be processed in blocks, by one process with little memory or by the machines of a
cluster. The blocks change what a process holds, and never the answer: all ranks below are equal to
the last bit.
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
# PageRanks of a web follow a power law: few pages have most of it.

figure, axes = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
ordered = sorted(whole.values, reverse=True)
axes.loglog(range(1, len(ordered) + 1), ordered, color="#0B6E5F")
axes.set(xlabel="place", ylabel="PageRank")
plt.show()
