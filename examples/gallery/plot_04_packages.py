"""Packages that are used together
===============================

The packages installed in this environment, and what each of them depends on, are a graph of links.
Related packages depend on the same packages, or the same packages depend on them.
"""

import re
from importlib.metadata import distributions

import matplotlib.pyplot as plt

import cocite

links = []
for each in distributions():
    for needed in each.requires or ():
        if "extra ==" not in needed:
            name = re.match(r"[\w.-]+", needed)
            assert name is not None
            links.append((each.metadata["Name"].lower(), name[0].lower()))
print(len(links), "dependencies; the first:", links[0])

# %%
# What belongs with Sphinx? Mostly its extensions and the libraries that they share with it.

hits = cocite.related(links, "sphinx", k=8)
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.barh([hit.node for hit in hits][::-1], [hit.score for hit in hits][::-1], color="#0B6E5F")
axes.set_xlabel("similarity to sphinx")
plt.show()
