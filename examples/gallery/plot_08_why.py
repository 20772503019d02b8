"""Why two pages are related
=========================

A score is a sum of contributions from the pages that two pages have in common. This example draws
the contributions for five hits as stacked bars.
"""

import matplotlib.pyplot as plt

import cocite

links = "../animals.tsv"
index = cocite.build(cocite.ingest(links))
hits = index.related("Zebra", k=5)

# %%
# The gray part is the rest of the score after the six largest contributions.

figure, axes = plt.subplots(figsize=(8, 3), layout="constrained")
colors = ["#1A5FC5", "#C77F1B", "#9F3665", "#475F18", "#A578E6", "#269196"]
for row, hit in enumerate(reversed(list(hits))):
    start = 0.0
    for color, part in zip(colors, index.why("Zebra", hit.node, k=6).reasons, strict=False):
        axes.barh(row, part.contribution, left=start, color=color, edgecolor="white")
        if part.contribution > 0.035:
            middle = start + part.contribution / 2
            axes.text(middle, row, part.node, fontsize=6, color="white", ha="center", va="center")
        start += part.contribution
    axes.barh(row, hit.score - start, left=start, color="#C9D1CE")
axes.set_yticks(range(len(hits)), [hit.node for hit in reversed(list(hits))])
axes.set_xlabel("similarity to Zebra")
plt.show()
