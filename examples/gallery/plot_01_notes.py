"""Related notes in a vault
========================

A vault is a folder of Markdown files, and its wiki links are the graph. Two notes are related if
the same notes are nearest to both, even if neither links to the other.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import cocite

NOTES = {
    "Sourdough": "Feed the [[Starter]], then bake in a [[Dutch oven]]. See [[Hydration]].",
    "Focaccia": "High [[Hydration]], plenty of [[Olive oil]]. Use the [[Starter]] or [[Yeast]].",
    "Pizza": "Stretch the dough by hand: [[Hydration]], [[Yeast]], [[Olive oil]].",
    "Baguette": "Short [[Hydration]] notes; steam instead of a [[Dutch oven]]. [[Yeast]].",
    "Starter": "Flour and water. Needs a warm spot.",
    "Hydration": "Water divided by flour.",
    "Espresso": "Fresh [[Grinder]] settings matter more than the [[Water]].",
    "Pour-over": "Medium [[Grinder]] setting, soft [[Water]], patience.",
    "Cold brew": "Coarse [[Grinder]] setting, cold [[Water]], twelve hours.",
    "Grinder": "Burrs, not blades.",
}

with tempfile.TemporaryDirectory() as folder:
    for name, text in NOTES.items():
        Path(folder, f"{name}.md").write_text(f"# {name}\n\n{text}\n", "utf-8")
    hits = cocite.related(folder, "Sourdough", k=6)

hits

# %%
# The list contains the notes that *Sourdough* links to, and two notes on bread that are not linked
# with it.

names = [str(hit.node) for hit in hits][::-1]
linked = [f"[[{name}]]" in NOTES["Sourdough"] for name in names]
figure, axes = plt.subplots(figsize=(6, 2.8), layout="constrained")
axes.barh(
    names,
    [hit.score for hit in hits][::-1],
    color=["#0B6E5F" if here else "#C77F1B" for here in linked],
)
axes.set_xlabel("similarity to Sourdough (green: linked, amber: found)")
plt.show()
