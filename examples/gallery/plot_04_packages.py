"""Packages that are used together
===============================

The packages in this environment and their dependencies form a graph. Two packages are related if
they depend on the same packages, or if the same packages depend on them.
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
# Which packages are related to Sphinx? Mostly its extensions, and the libraries that it shares with
# them.

hits = cocite.related(links, "sphinx", k=8)
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.barh([hit.node for hit in hits][::-1], [hit.score for hit in hits][::-1], color="#0B6E5F")
axes.set_xlabel("similarity to sphinx")
plt.show()
