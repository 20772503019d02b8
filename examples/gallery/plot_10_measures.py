"""How similar measures are
========================

Measures answer different questions. This picture shows which fraction of the ten most related pages
two measures have in common, on average.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cocite

MEASURES = ["fusion", "psimrank", "simrank", "xjaccard", "cocitation", "coupling", "ppr"]

with tempfile.TemporaryDirectory() as folder:
    web = cocite.generate_web(Path(folder, "web.graph"), nodes=1_000, links=9_000, seed=1)
    asked = [str(name) for name in web.names][::20]
    lists = []
    for measure in MEASURES:
        index = cocite.build(web, measure=measure)
        lists.append([{hit.node for hit in index.related(node, k=10)} for node in asked])

common = np.array(
    [[np.mean([len(x & y) / 10 for x, y in zip(a, b, strict=True)]) for b in lists] for a in lists]
)

# %%
# SimRank and its variants agree more with each other than with measures that use out-links. On the
# diagonal, a value below 1 means that the measure finds fewer than ten pages for some nodes.

figure, axes = plt.subplots(figsize=(5.6, 4.8), layout="constrained")
axes.imshow(common, cmap="viridis", vmin=0, vmax=1)
axes.set_xticks(range(len(MEASURES)), MEASURES, rotation=45, ha="right")
axes.set_yticks(range(len(MEASURES)), MEASURES)
for (row, column), value in np.ndenumerate(common):
    axes.text(
        column, row, f"{value:.2f}", ha="center", va="center", color="w" if value < 0.6 else "k"
    )
plt.show()
