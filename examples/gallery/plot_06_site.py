"""Related pages of a documentation site
=====================================

Menus link every page to every other page, so their links say little about a page. With only the
links of the main text, the results change.
"""

import matplotlib.pyplot as plt
import numpy as np

import cocite

folder = "../handbook"
everything = cocite.ingest(folder)
texts = cocite.ingest(folder, links="main")
print(everything.edges, "links in all,", texts.edges, "in the text")

# %%
# The same query, with and without the links of menus.

page = "guide/install.html"
scores = [
    {hit.node: hit.score for hit in cocite.build(graph).related(page, k=20)}
    for graph in (everything, texts)
]
names = sorted(scores[1], key=scores[1].__getitem__)
figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
rows = np.arange(len(names))
axes.barh(rows + 0.2, [scores[1][n] for n in names], 0.4, color="#0B6E5F", label="main text")
axes.barh(rows - 0.2, [scores[0].get(n, 0) for n in names], 0.4, color="#C9D1CE", label="all links")
axes.set_yticks(rows, names)
axes.set_xlabel(f"similarity to {page}")
axes.legend()
plt.show()
