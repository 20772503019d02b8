"""Intervals get narrower with samples
===================================

SimRank from sampled walks is an estimate, and cocite reports an interval for its error. At least 19
of 20 such intervals contain the exact score, which this example also computes.
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
# On average, four times as many samples halve the width of an interval.

figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
middle = [score.score for score in scores]
below = [score.score - score.low for score in scores]
above = [score.high - score.score for score in scores]
axes.errorbar(sizes, middle, [below, above], fmt="o", color="#0B6E5F", capsize=3)
axes.axhline(truth, color="#C77F1B", label=f"exact: {truth:.4f}")
axes.set(xscale="log", xlabel="samples", ylabel=f"SimRank of {a} and {b}")
axes.legend()
plt.show()
