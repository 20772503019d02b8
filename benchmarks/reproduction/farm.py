"""A link farm on cnr-2000: PageRank, trust, spam mass and similarity (Lin, King and Lyu 2006).

Section 3.4 of *PageSim*: a spammer adds 1,000 pages that link to a target and a popular page, so
that the two look similar. The target links back to the farm. In a *dense* farm, each page also
links to the next 20. Trusted pages are the 200 pages with the highest PageRank along reversed
links, without the farm and its target; TrustRank's authors choose seeds by this rank, and review
each. The spam mass uses every tenth page of the web instead. Ranks and PageSim are in units of an
average page's PageRank.

Cost: half a minute of CPU time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import cocite

WEB = "cnr-2000/cnr-2000.edges.txt.gz"
SIZE, _NEXT, _SEEDS, _POPULAR = 1_000, 20, 200, 100
_TOP = 1_000
MEASURES = ("pagesim", "cocitation")


def farm(data: Path, work: Path) -> dict[str, Any]:
    """Measure the target in the web alone, with a farm, and with a dense farm."""
    web = cocite.ingest(data / WEB).to_scipy().tocoo()
    links = np.stack([web.row, web.col], axis=1).astype(np.int64)
    order = np.argsort(-_ranked(links).values, kind="stable")
    target, popular = int(order[order.size // 2]), int(order[_POPULAR - 1])
    members = web.shape[0] + np.arange(SIZE)
    plain = [(members, target), (members, popular), (target, members)]
    dense = [(members, np.roll(members, -step)) for step in range(1, _NEXT + 1)]
    found: dict[str, Any] = {}
    for name, more in (("no farm", []), ("farm", plain), ("dense farm", plain + dense)):
        added = [np.stack(np.broadcast_arrays(*ends), axis=1) for ends in more]
        found[name] = _measured(np.concatenate([links, *added]), (target, popular), members)
    return found


def _graph(links: NDArray[np.int64]) -> cocite.Graph:
    size = int(links.max()) + 1
    return cocite.ingest(csr_array((np.ones(len(links)), links.T), (size, size)))


def _ranked(links: NDArray[np.int64]) -> cocite.Ranks:
    return cocite.pagerank(_graph(links))


def _measured(
    links: NDArray[np.int64], pair: tuple[int, int], members: NDArray[np.int64]
) -> dict[str, Any]:
    """Measure a web with the ``members`` of a farm, or without a farm."""
    (target, popular), graph = pair, _graph(links)
    spam = np.append(members[members < graph.nodes], target)
    seeds = np.argsort(-_ranked(links[:, ::-1]).values, kind="stable")[:_SEEDS]
    ranks = cocite.pagerank(graph, trust=seeds[~np.isin(seeds, spam)].tolist())
    sample = np.arange(0, members[0], 10)
    mass = cocite.pagerank(graph, trust=sample[~np.isin(sample, spam)].tolist()).spam_mass
    assert ranks.trust is not None
    assert mass is not None
    top = np.argsort(-ranks.values, kind="stable")[:_TOP]
    scores, places = {}, {}
    for measure in MEASURES:
        index = cocite.build(graph, measure=measure, threads=1)
        scores[measure] = index.similarity(target, popular).score
        hits = index.related(popular, k=graph.nodes)
        places[measure] = next((i for i, hit in enumerate(hits, 1) if hit.node == target), None)
    return {
        "rank": float(graph.nodes * ranks.values[target]),
        "place": _place(ranks.values, target),
        "trust place": _place(ranks.trust, target),
        "spam mass": float(mass[target]),
        "popular spam mass": float(mass[popular]),
        "top with as much": int((mass[top] >= mass[target]).sum()),
        "farm rank": float(graph.nodes * ranks.values[spam].sum()),
        "score": scores,
        "place in list": places,
    }


def _place(values: NDArray[np.float64], node: int) -> int:
    return int((values > values[node]).sum()) + 1
