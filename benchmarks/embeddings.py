"""The default measure beside embeddings, on graphs whose nodes have labels.

    python -m benchmarks.embeddings [--write] [--queries N] [GRAPH]...

Graphs: wikispeedia (an article's categories), cora (topics), polblogs (leanings), hollins (the host
and first folder of a page's URL, those of ten pages or more), and two that are made: ``blocks``,
600 nodes in six groups whose links stay inside mostly, and ``unlike``, the same with links that
lead to other groups mostly. A hit is right if it shares a label with the question's node.

Peers take links either way, in NumPy and SciPy, 128 dimensions, and the largest cosine:

    spectral        largest singular vectors of D**(-1/2) A D**(-1/2), scaled by their values
    NetMF T         log(max(1, volume / T * sum over r <= T of (D**(-1) A)**r D**(-1))), factorized
    ProNE           its sparse factorization and spectral propagation, with the paper's constants
    log-PPR + SVD   log(max(1, volume * PPR D**(-1))), restart 0.15, factorized
    Adamic-Adar     no embedding: common neighbors, each by 1 / log(degree)

precision@10 of ``--queries`` nodes (600) that have a label, among these nodes: *as they end* counts
what a list of fewer than ten lacks as wrong, *filled* fills it up at random. Differences are
paired, with intervals of two standard errors. Processor seconds are those of all top-20 lists.

Source: Qiu et al. 2018 (NetMF); Zhang et al. 2019 (ProNE); Adamic, Adar 2003.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import svds

import cocite
from benchmarks.block import DATA, ROOT, Block, run_today

DIMENSIONS, LISTED, SHOWN = 128, 20, 10
GRAPHS = "wikispeedia", "cora", "polblogs", "hollins", "blocks", "unlike"
Matrix = NDArray[np.float64]
Lists = list[NDArray[np.int64]]
Pairs = Iterable[tuple[str, str]]


# -- graphs with labels ------------------------------------------------------------------


def _columns(path: Path, first: int, second: int, skip: int = 0) -> list[tuple[str, str]]:
    rows = [
        line for line in path.read_text("utf-8").splitlines()[skip:] if line[:1] not in ("", "#")
    ]
    split = [row.split("\t") if "\t" in row else row.split() for row in rows]
    return [(row[first], row[second]) for row in split if len(row) > max(first, second)]


def _folders(path: Path) -> list[tuple[str, str]]:
    """Of each page the host and the first folder, of those that hold ten pages or more."""
    found = []
    for page, url in _columns(path, 0, 1, 1):
        parts = urlsplit(url)
        folders = [part for part in parts.path.split("/")[:-1] if part]
        if folders:
            found.append((page, f"{parts.netloc}/{folders[0]}".lower()))
    sizes = Counter(label for _, label in found)
    return [(page, label) for page, label in found if sizes[label] >= 10]


def _made(inside: float, seed: int = 3) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """600 nodes in six groups, 4,800 links: such a part of them leads into the node's own group,
    the others into the next one.
    """
    rng = np.random.default_rng(seed)
    source = rng.integers(0, 600, 4800)
    group = (source % 6 + (rng.random(4800) >= inside)) % 6
    target = rng.integers(0, 100, 4800) * 6 + group
    links = [(str(a), str(b)) for a, b in zip(source.tolist(), target.tolist(), strict=True)]
    return links, [(str(node), str(node % 6)) for node in range(600)]


def read(name: str) -> tuple[Pairs, Pairs]:
    """The links and the labels of a graph."""
    if name == "wikispeedia":
        folder = DATA / name
        return _columns(folder / "links.tsv", 0, 1), _columns(folder / "categories.tsv", 0, 1)
    if name == "cora":
        folder = DATA / "cora-linqs"
        return _columns(folder / "cora.cites", 1, 0), _columns(folder / "labels.tsv", 0, 1)
    if name == "polblogs":
        return _columns(DATA / name / "edges.tsv", 0, 1), _columns(DATA / name / "labels.tsv", 0, 2)
    if name == "hollins":
        folder = DATA / name
        links = _columns(folder / "hollins_edges.txt", 0, 1, 1)
        return links, _folders(folder / "hollins_urls.txt")
    return _made(0.9 if name == "blocks" else 0.1)


class Labeled:
    """A stored graph, its links taken either way, and labels: bool[nodes, labels]."""

    def __init__(self, name: str, folder: Path) -> None:
        links, labels = read(name)
        (folder / "links.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in links))
        self.graph = cocite.ingest(
            folder / "links.tsv", folder / name, header="no", delimiter="tab"
        )
        nodes, names = self.graph.nodes, self.graph.names
        offsets = self.graph.in_offsets.astype(np.int64)
        sources = self.graph.in_sources.astype(np.int64)
        links_in = sp.csr_matrix((np.ones(sources.size), sources, offsets), (nodes, nodes))
        self.either = (links_in + links_in.T).tocsr()
        self.either.setdiag(0)
        self.either.eliminate_zeros()
        known = [(names.find(node), label) for node, label in labels]
        there = [(node, label) for node, label in known if node is not None]
        numbers = {label: i for i, label in enumerate(sorted({label for _, label in there}))}
        rows, columns = zip(*((node, numbers[label]) for node, label in there), strict=True)
        shape = nodes, len(numbers)
        self.labels = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape)
        self.known = np.flatnonzero(np.diff(self.labels.indptr))

    def judged(self, lists: Lists, queries: NDArray[np.int64]) -> Matrix:
        """float64[queries, 2]: precision@10 as lists end, and filled up at random."""
        among, found = np.zeros(self.graph.nodes, bool), np.zeros((queries.size, 2))
        among[self.known] = True
        for row, (query, hits) in enumerate(zip(queries.tolist(), lists, strict=True)):
            alike = (self.labels @ self.labels[query].T).toarray().ravel() > 0
            kept = hits[among[hits] & (hits != query)][:SHOWN]
            right = int(alike[kept].sum())
            rest = (alike[self.known].sum() - 1 - right) / (self.known.size - 1 - kept.size)
            found[row] = right / SHOWN, (right + (SHOWN - kept.size) * rest) / SHOWN
        return found


# -- methods -----------------------------------------------------------------------------


def _nearest(vectors: Matrix) -> Callable[[Sequence[int]], Lists]:
    """Lists by the largest cosine; a node without a vector has none."""
    lengths = np.linalg.norm(vectors, axis=1)
    unit = vectors / np.where(lengths > 0, lengths, 1)[:, None]

    def lists(nodes: Sequence[int]) -> Lists:
        found: Lists = []
        for low in range(0, len(nodes), 512):
            some = np.asarray(nodes[low : low + 512])
            scores = unit[some] @ unit.T
            scores[np.arange(some.size), some] = -np.inf
            scores[:, lengths == 0] = -np.inf
            found += _best(scores)
        return found

    return lists


def _best(scores: Matrix, count: int = 5 * LISTED) -> Lists:
    count = min(count, scores.shape[1] - 1)
    top = np.argpartition(-scores, count, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(scores, top, 1), axis=1, kind="stable")
    top = np.take_along_axis(top, order, 1)
    return [
        row[np.isfinite(own[row]) & (own[row] > 0)] for row, own in zip(top, scores, strict=True)
    ]


def _factors(matrix: Any, power: float) -> Matrix:
    """The largest singular vectors, scaled by a power of their values."""
    left, values, _ = svds(matrix, min(DIMENSIONS, matrix.shape[0] - 2), random_state=0)
    found: Matrix = left * values**power
    return found


def _degrees(either: sp.csr_matrix) -> Matrix:
    found: Matrix = np.asarray(either.sum(axis=1)).ravel()
    found[found == 0] = 1.0
    return found


def spectral(either: sp.csr_matrix) -> Matrix:
    """Singular vectors of the links over the roots of both degrees."""
    roots = sp.diags(_degrees(either) ** -0.5)
    return _factors(roots @ either @ roots, 1.0)


def netmf(either: sp.csr_matrix, window: int) -> Matrix:
    """The matrix that DeepWalk factorizes with this window, one negative sample."""
    degrees = _degrees(either)
    step = (sp.diags(1 / degrees) @ either).tocsr()
    power = total = step.toarray()
    for _ in range(window - 1):
        power = step @ power
        total = total + power
    scaled = degrees.sum() / window * total / degrees
    return _factors(np.log(np.maximum(scaled, 1.0)), 0.5)


def log_ppr(either: sp.csr_matrix, restart: float = 0.15) -> Matrix:
    """Personalized PageRank of all nodes, as mutual information."""
    degrees = _degrees(either)
    step = (sp.diags(1 / degrees) @ either).T.tocsr()
    found = restart * np.eye(len(degrees))
    term = found
    for _ in range(40):
        term = (1 - restart) * (step @ term)
        found = found + term
    scaled = degrees.sum() * found.T / degrees
    return _factors(np.log(np.maximum(scaled, 1.0)), 0.5)


def prone(either: sp.csr_matrix, order: int = 10, mu: float = 0.2, theta: float = 0.5) -> Matrix:
    """Sparse factorization with negative samples, then a band-pass filter of the graph."""
    degrees, nodes = _degrees(either), either.shape[0]
    step = (sp.diags(1 / degrees) @ either).tocoo()
    noise = degrees**0.75 / (degrees**0.75).sum()
    values = np.log(np.maximum(step.data, 1e-12)) - np.log(noise[step.col])
    vectors = _factors(sp.csr_matrix((values, (step.row, step.col)), step.shape), 0.5)
    closed = (either + sp.identity(nodes)).tocsr()
    walk = sp.diags(1 / np.asarray(closed.sum(axis=1)).ravel()) @ closed
    filtered = sp.identity(nodes) - walk - mu * sp.identity(nodes)
    from scipy.special import iv

    before, now = vectors, 0.5 * (filtered @ (filtered @ vectors)) - vectors
    total = iv(0, theta) * before - 2 * iv(1, theta) * now
    for i in range(2, order):
        after = (filtered @ (filtered @ now)) - 2 * now - before
        total = total + (2 if i % 2 == 0 else -2) * iv(i, theta) * after
        before, now = now, after
    mixed = closed @ (vectors - total)
    left, values, _ = np.linalg.svd(mixed, full_matrices=False)
    found: Matrix = left * np.sqrt(values)
    return found


def adamic_adar(either: sp.csr_matrix) -> Callable[[Sequence[int]], Lists]:
    """Lists by common neighbors, each by 1 / log(degree)."""
    linked = (either > 0).astype(float)
    degrees = np.asarray(linked.sum(axis=1)).ravel()
    weights = sp.diags(np.where(degrees > 1, 1 / np.log(np.maximum(degrees, 2)), 0))

    def lists(nodes: Sequence[int]) -> Lists:
        found: Lists = []
        for low in range(0, len(nodes), 512):
            some = np.asarray(nodes[low : low + 512])
            scores = (linked[some] @ weights @ linked).toarray()
            scores[np.arange(some.size), some] = 0
            found += _best(scores)
        return found

    return lists


def cocite_lists(labeled: Labeled, measure: str, folder: Path) -> Callable[[Sequence[int]], Lists]:
    """Lists of a measure with its defaults."""
    index = cocite.build(labeled.graph, folder / measure, measure=measure)

    def lists(nodes: Sequence[int]) -> Lists:
        names = index.nodes.names(np.asarray(nodes, np.uint32))
        every = (index.related(name, 5 * LISTED) for name in names)
        return [index.nodes.ids([h.node for h in hits]).astype(np.int64) for hits in every]

    return lists


METHODS: dict[str, Callable[[Labeled, Path], Callable[[Sequence[int]], Lists]]] = {
    "fusion": lambda data, folder: cocite_lists(data, "fusion", folder),
    "snn": lambda data, folder: cocite_lists(data, "snn", folder),
    "ppr-pmi": lambda data, folder: cocite_lists(data, "ppr-pmi", folder),
    "spectral": lambda data, folder: _nearest(spectral(data.either)),
    "NetMF 1": lambda data, folder: _nearest(netmf(data.either, 1)),
    "NetMF 10": lambda data, folder: _nearest(netmf(data.either, 10)),
    "ProNE": lambda data, folder: _nearest(prone(data.either)),
    "log-PPR + SVD": lambda data, folder: _nearest(log_ppr(data.either)),
    "Adamic-Adar": lambda data, folder: adamic_adar(data.either),
}


def measure(name: str, queries: int) -> list[dict[str, Any]]:
    """A row for each method, with its difference from the first one."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        data = Labeled(name, Path(place))
        count = min(queries, data.known.size)
        asked = np.sort(np.random.default_rng(1).choice(data.known, count, replace=False))
        first = np.empty((count, 2))
        for method, made in METHODS.items():
            begin = time.process_time()
            lists = made(data, Path(place))
            ready = time.process_time()
            found = data.judged(lists(asked.tolist()), asked)
            asking = time.process_time()
            lists(asked.tolist())
            each = (time.process_time() - asking) / count
            first = found if not rows else first
            away = found - first
            rows.append(
                {
                    "graph": name,
                    "method": method,
                    "ends": float(found[:, 0].mean()),
                    "filled": float(found[:, 1].mean()),
                    "difference": float(away[:, 1].mean()),
                    "interval": float(2 * away[:, 1].std() / np.sqrt(count)),
                    "seconds": ready - begin + each * data.graph.nodes,
                }
            )
    return rows


def table(results: dict[str, Any]) -> str:
    """The block of ``docs/evaluation.md``."""
    lines = [
        "| graph | method | precision@10 as lists end | filled | less fusion, filled "
        "| all lists, processor seconds |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in results["rows"]:
        away = (
            f"{row['difference']:+.3f} ±{row['interval']:.3f}" if row["method"] != "fusion" else ""
        )
        lines.append(
            f"| {row['graph']} | {row['method']} | {row['ends']:.3f} | {row['filled']:.3f} "
            f"| {away} | {row['seconds']:.1f} |"
        )
    lines.append(
        f"\n{results['queries']} questions a graph; {results['date']}, {results['machine']}."
    )
    return "\n".join(lines)


BLOCK = Block("embeddings", ROOT / "docs/evaluation.md", "<!-- end of embeddings -->", table)


def main() -> None:
    """Measure, print, and keep and write what was asked for."""
    parser = BLOCK.parser(__doc__)
    parser.add_argument("graphs", nargs="*", default=GRAPHS, metavar="GRAPH")
    parser.add_argument("--queries", type=int, default=600)
    chosen = parser.parse_args()
    rows = []
    for name in chosen.graphs:
        rows += measure(name, chosen.queries)
    results = {**run_today(), "queries": chosen.queries, "rows": rows}
    print(table(results))
    BLOCK.keep(results, chosen)


if __name__ == "__main__":
    main()
