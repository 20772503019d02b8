"""Walks with an odd number of steps and wider rows in ``fusion``, on 64 generated graphs.

    python -m benchmarks.walks

The graphs are of eight kinds, none of them used in ``benchmarks.embeddings``: groups with equal
degrees or with hubs, whose links stay in the group, lead to another group or to the next group; and
users with items. Sizes, degrees and the fraction of random links are drawn at random.
Prints the mean precision@10 of each kind with the weights 1, a quarter and 0, with the weight that
the build chooses, and with this weight and the row width of large graphs. Then prints, on average
and in the worst case: the difference between the chosen weight and 1; between the better of a
quarter and 0, and 1; and between wider rows and the row width of large graphs. Takes five minutes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import cocite
from cocite.evaluation import IndexRanker, Judge, read_labels
from cocite.evaluation.truth import sample_pages
from cocite.index.layouts.rows import fusion
from cocite.measures import fusion as measure

KINDS = [
    (links, hubs) for links in ("inside", "another", "next", "items") for hubs in (False, True)
]
EACH, QUERIES = 8, 300
WEIGHTS = {"1": 1.0, "¼": 0.25, "0": 0.0}


def made(links: str, hubs: bool, seed: int) -> tuple[NDArray[np.int64], list[int]]:
    """Links, int64[links, 2], and the group of every node."""
    rng = np.random.default_rng((seed, KINDS.index((links, hubs))))
    nodes, groups = int(rng.integers(400, 1500)), int(rng.integers(3, 10))
    count, share = int(nodes * rng.uniform(3, 12)), rng.uniform(0.5, 0.95)
    group = np.sort(rng.integers(0, groups, nodes))
    items = links == "items"
    side = rng.permutation(nodes) % 2 == 1 if items else np.zeros(nodes, bool)
    weight = rng.pareto(2.0, nodes) + 0.2 if hubs else np.ones(nodes)

    def drawn(chosen: NDArray[np.bool_], size: int) -> NDArray[np.int64]:
        ids = np.flatnonzero(chosen)
        return rng.choice(ids, size, p=weight[ids] / weight[ids].sum())

    source, target = drawn(~side, count), np.zeros(count, np.int64)
    step = {"inside": 0, "items": 0, "next": 1}.get(links, 0)
    to = (group[source] + step) % groups
    if links == "another":
        to = (group[source] + rng.integers(1, groups, count)) % groups
    by_chance = rng.random(count) >= share
    to[by_chance] = rng.integers(0, groups, int(by_chance.sum()))
    for number in range(groups):
        mine = to == number
        target[mine] = drawn(
            (group == number) & (side if links == "items" else True), int(mine.sum())
        )
    own = group + groups * side
    return np.stack((source, target), 1), own.tolist()


def precision(graph: cocite.Graph, labels: Path, place: Path) -> float:
    """Precision@10 of the default."""
    read = read_labels(labels, graph.names, separator="")
    judge = Judge(sample_pages(read.labeled, QUERIES, 1), relevance=read.collapsed(), cutoffs=(10,))
    index = cocite.build(graph, place, overwrite=True)
    return float(judge(IndexRanker(index, read.labeled)).value("filled_precision@10"))


def main() -> None:
    """Print the table."""
    chooses, wider = fusion.odd_weight, measure.WIDER
    rows: dict[tuple[str, bool], list[list[float]]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, found in rows.items():
            for seed in range(EACH):
                pairs, groups = made(*kind, seed)
                np.savetxt(folder / "links.tsv", pairs, "%d", "\t")
                lines = (f"{node}\t{group}\n" for node, group in enumerate(groups))
                (folder / "labels.tsv").write_text("".join(lines))
                graph = cocite.ingest(folder / "links.tsv", folder / "graph", overwrite=True)
                figures = []
                for weight in WEIGHTS.values():
                    fusion.odd_weight = lambda *_, weight=weight: weight
                    figures.append(precision(graph, folder / "labels.tsv", folder / "index"))
                fusion.odd_weight = chooses
                for measure.WIDER in (wider, ()):
                    figures.append(precision(graph, folder / "labels.tsv", folder / "index"))
                measure.WIDER = wider
                found.append(figures)
    print("| links | hubs |", " | ".join([*WEIGHTS, "chosen", "chosen, narrow"]), "|")
    print("|", " | ".join(["---"] * 7), "|")
    for (links, hubs), found in rows.items():
        print(f"| {links} | {hubs} |", " | ".join(f"{v:.3f}" for v in np.mean(found, axis=0)), "|")
    every = np.array([row for found in rows.values() for row in found])
    gain, most = every[:, 3] - every[:, 0], every[:, 1:3].max(axis=1) - every[:, 0]
    print(f"chosen: {gain.mean():+.3f}, at worst {gain.min():+.3f}; the better: {most.mean():+.3f}")
    wider = every[:, 3] - every[:, 4]
    print(f"wider rows: {wider.mean():+.3f}, at worst {wider.min():+.3f}")


if __name__ == "__main__":
    main()
