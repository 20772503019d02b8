"""The neighborhoods of a small wiki
=================================

A matrix of all similarity scores shows the subjects of a wiki: each block on the diagonal is a
group of related pages.
"""

import matplotlib.pyplot as plt
import numpy as np

import cocite

links = "../animals.tsv"
graph = cocite.ingest(links)
index = cocite.build(graph)
names = [str(name) for name in graph.names]
scores = np.array([[index.similarity(a, b).score for b in names] for a in names])

# %%
# Order the pages by the second eigenvector of the scores, so that related pages are neighbors.

degrees = scores.sum(axis=1)
scaled = scores / np.sqrt(np.outer(degrees, degrees))
order = np.argsort(np.linalg.eigh(scaled)[1][:, -2])
figure, axes = plt.subplots(figsize=(7, 6.4), layout="constrained")
axes.imshow(np.sqrt(scores[np.ix_(order, order)]), cmap="viridis")
axes.set_xticks(range(len(names)), [names[n] for n in order], rotation=90, fontsize=6)
axes.set_yticks(range(len(names)), [names[n] for n in order], fontsize=6)
axes.set_title("similarity of all pairs (square root)")
plt.show()
