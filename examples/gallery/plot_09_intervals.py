"""Intervals get narrower with samples
===================================

SimRank by sampled walks has an error, and cocite says how large it may be. Nineteen of twenty such
intervals hold the exact score, which is computed apart.
"""

import matplotlib.pyplot as plt

import cocite

links = "../animals.tsv"
graph = cocite.ingest(links)
exact = cocite.exact_simrank(graph)
a, b = "Zebra", "Giraffe"
truth = exact.similarity(a, b)

sizes = [50, 100, 200, 400, 800, 1600]
scores = [cocite.build(graph, measure="simrank", samples=n).similarity(a, b) for n in sizes]

# %%
# On average, four times as many samples make an interval half as wide.

figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
middle = [score.score for score in scores]
below = [score.score - score.low for score in scores]
above = [score.high - score.score for score in scores]
axes.errorbar(sizes, middle, [below, above], fmt="o", color="#0B6E5F", capsize=3)
axes.axhline(truth, color="#C77F1B", label=f"exact: {truth:.4f}")
axes.set(xscale="log", xlabel="samples", ylabel=f"SimRank of {a} and {b}")
axes.legend()
plt.show()
