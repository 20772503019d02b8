"""A link farm
===========

A link farm is a set of pages created to link to one target, which raises the target's PageRank. Two
things reveal the farm: the pages related to the target are mostly pages of the farm, and the target
has a high spam mass, because hardly any of its rank comes from trusted pages.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cocite

with tempfile.TemporaryDirectory() as folder:
    web = cocite.generate_web(Path(folder, "web.graph"), nodes=2_000, links=16_000, seed=3)
    names = [str(name) for name in web.names]
    links = [(names[a], names[b]) for a, b in zip(*web.to_scipy().nonzero(), strict=True)]
    before = cocite.pagerank(web)

target = names[int(np.argsort(before.values)[len(names) // 2])]
place = []
sizes = [0, 10, 30, 100, 300]
for size in sizes:
    farm = [(f"farm-{n}", target) for n in range(size)]
    farm += [(target, f"farm-{n}") for n in range(size)]
    ranks = cocite.pagerank(cocite.ingest(links + farm))
    place.append(int((ranks.values > ranks[target]).sum()) + 1)

# %%
# Three hundred pages lift the median page to the top of the ranking.

farmed = cocite.ingest(links + farm)
hits = cocite.build(farmed).related(target, k=20)
print(sum(hit.node.startswith("farm-") for hit in hits), "of 20 related pages belong to the farm")

# %%
# With every tenth page of the web trusted, the target has the highest spam mass of the top 20.

ranks = cocite.pagerank(farmed, trust=names[::10])
top = [name for name, _ in ranks.top(20)]
print("most spam mass:", max(top, key=lambda name: ranks[name][2]) == target)

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.plot(sizes, place, "o-", color="#0B6E5F")
axes.set(xlabel="pages in the farm", ylabel="place by PageRank", yscale="log")
axes.invert_yaxis()
plt.show()
