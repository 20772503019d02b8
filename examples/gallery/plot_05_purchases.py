"""Items that the same people buy
==============================

Purchases form a bipartite graph, with readers on one side and books on the other. A query for a
book returns books.
"""

import matplotlib.pyplot as plt
import numpy as np

import cocite

SHELVES = {
    "science fiction": ["Dune", "Solaris", "Neuromancer", "Foundation"],
    "crime": ["The Big Sleep", "Gaudy Night", "The Moonstone", "Rebecca"],
    "cooking": ["Salt Fat Acid Heat", "The Flavour Thesaurus", "Jerusalem", "Plenty"],
}
rng = np.random.default_rng(4)
books = [book for shelf in SHELVES.values() for book in shelf]
purchases = []
for reader in range(150):
    shelf = list(SHELVES.values())[reader % 3]
    likes = [book in shelf for book in books]
    weights = np.where(likes, 0.21, 0.02)
    for book in rng.choice(books, size=3, replace=False, p=weights / weights.sum()):
        purchases.append((f"reader {reader}", str(book)))

graph = cocite.ingest(purchases, bipartite=True)
index = cocite.build(graph)
index.related("Dune", k=4)

# %%
# Some purchases are from other shelves. The shelves are still clearly visible.

scores = np.array([[index.similarity(a, b).score for b in books] for a in books])
np.fill_diagonal(scores, np.nan)
figure, axes = plt.subplots(figsize=(6, 5.2), layout="constrained")
image = axes.imshow(scores, cmap="viridis")
axes.set_xticks(range(len(books)), books, rotation=90, fontsize=7)
axes.set_yticks(range(len(books)), books, fontsize=7)
figure.colorbar(image, label="similarity", shrink=0.8)
plt.show()
