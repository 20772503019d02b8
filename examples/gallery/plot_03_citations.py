"""Papers that share references
============================

Papers on the same subject often do not cite each other, because they appeared at the same time.
Bibliographic coupling and the default measure find such papers by the references they share.
"""

import matplotlib.pyplot as plt

import cocite

YEARS = {
    "PageRank 1998": 1998,
    "HITS 1999": 1999,
    "SimRank 2002": 2002,
    "Topic-sensitive PageRank 2002": 2002,
    "Scaling personalized search 2003": 2003,
    "Scaling link similarity 2005": 2005,
    "Local partitioning 2006": 2006,
    "SimRank on GPUs 2010": 2010,
    "Top-k SimRank 2012": 2012,
}
CITES = [
    ("HITS 1999", "PageRank 1998"),
    ("SimRank 2002", "PageRank 1998"),
    ("SimRank 2002", "HITS 1999"),
    ("Topic-sensitive PageRank 2002", "PageRank 1998"),
    ("Topic-sensitive PageRank 2002", "HITS 1999"),
    ("Scaling personalized search 2003", "Topic-sensitive PageRank 2002"),
    ("Scaling personalized search 2003", "PageRank 1998"),
    ("Scaling link similarity 2005", "SimRank 2002"),
    ("Scaling link similarity 2005", "Scaling personalized search 2003"),
    ("Local partitioning 2006", "Scaling personalized search 2003"),
    ("Local partitioning 2006", "PageRank 1998"),
    ("SimRank on GPUs 2010", "SimRank 2002"),
    ("SimRank on GPUs 2010", "Scaling link similarity 2005"),
    ("Top-k SimRank 2012", "SimRank 2002"),
    ("Top-k SimRank 2012", "Scaling link similarity 2005"),
]

paper = "Top-k SimRank 2012"
hits = cocite.related(CITES, paper, k=8)
hits

# %%
# The paper on GPUs comes first, because it cites the same two papers. There is no citation between
# the GPU paper and the query paper.

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
for hit in hits:
    cited = (paper, hit.node) in CITES
    axes.plot(YEARS[hit.node], hit.score, "o", color="#0B6E5F" if cited else "#C77F1B")
    axes.annotate(
        hit.node, (YEARS[hit.node], hit.score), (6, 2), textcoords="offset points", fontsize=7
    )
axes.set(xlabel="year", ylabel=f"similarity to {paper}", xlim=(1997, 2016))
axes.set_title(f"green: cited by {paper}, amber: found", fontsize=9)
plt.show()
