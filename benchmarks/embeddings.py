"""Fusion compared with embeddings and other measures on labeled graphs.

    python -m benchmarks.embeddings [--graphs NAME...] [--queries N] [--write]

A hit is relevant if it shares a label with the query. Measures have default settings. The settings
of each peer (from a small grid) and the best peer are chosen on half of the queries; all methods
are evaluated on the other half. Seconds are CPU time of all top-20 lists, on one thread:
fusion builds an index and writes the lists; spectral vectors are computed and compared exactly.
cit-hepph and social have no labels and are only timed; social, which takes minutes, runs only on
request.

``--write`` stores the results of these graphs under results/ and in docs/evaluation.md.
Source: Qiu et al. 2018 (NetMF); Zhang et al. 2019 (ProNE); Adamic, Adar 2003; Perozzi et al. 2014.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import iv
from threadpoolctl import threadpool_limits

import cocite
from benchmarks.block import DATA, ROOT, Block, edit, run_today
from benchmarks.related_all import social
from benchmarks.studies.checks import embed
from benchmarks.studies.rankers import RowRanker, VectorRanker
from cocite import Graph
from cocite.evaluation import Bootstrap, IndexRanker, Judge, Judgment, Labels, Ranker, read_labels
from cocite.evaluation.truth import sample_pages
from cocite.measures.fusion import SIZES

LABELED = "wikispeedia", "cora", "polblogs", "hollins"
MADE = "blocks", "unlike", "cycle", "shop", "sites"
GRAPHS = (*LABELED, *MADE, "cit-hepph")
MEASURES = "fusion", "neighborhood", "psimrank"
DIMENSIONS, POWERS, DEFAULT_DIMENSIONS = (64, 128, 256), (0.5, 1.0), 128
CUTOFFS, LISTED = (10, 50), 20
DECIDES = "filled_precision@10"
SHOWN = DECIDES, "filled_ndcg@50", "filled_recall@50"
Matrix = NDArray[np.float32]
Row = dict[str, Any]


# -- graphs with labels ------------------------------------------------------------------


class Source(NamedTuple):
    """Files of links and of labels, with the columns of both; None where there are no labels."""

    links: Path
    labels: Path | None = None
    columns: tuple[int, int] = (1, 2)
    label_columns: tuple[int, int] = (1, 2)


def folders(urls: Path) -> Iterator[tuple[str, str]]:
    """Of each page the host and the first folder, of those that hold ten pages or more."""
    found = []
    for line in urls.read_text("utf-8").splitlines()[1:]:
        page, url = line.split()[:2]
        parts = urlsplit(url)
        inside = [part for part in parts.path.split("/")[:-1] if part]
        if inside:
            found.append((page, f"{parts.netloc}/{inside[0]}".lower()))
    sizes = Counter(label for _, label in found)
    return (row for row in found if sizes[row[1]] >= 10)


def made(name: str) -> tuple[NDArray[np.int64], list[str]]:
    """Links, int64[links, 2], and the label of every node.

    ``blocks`` and ``cycle`` are six groups of 100, ``unlike`` three of 200: .45, .8 and .9 of the
    links lead into the own group, the next one, and another one, the others anywhere. ``shop`` is
    bipartite: 400 users with 6 tastes, whose links lead to 300 items, .7 of them to items of their
    taste. ``sites`` are 25 sites of 60 pages in three folders, which link to the home page, to the
    index of the folder and back, to two others of the folder and to two pages anywhere.
    """
    rng = np.random.default_rng(3)
    if name == "sites":
        page = np.arange(1500)
        index = page // 20 * 20
        near = [index + rng.integers(0, 20, 1500) for _ in range(2)]
        far = [(1500 * rng.random(1500) ** 3).astype(np.int64) for _ in range(2)]
        pairs = [(index, page), *((page, v) for v in (page // 60 * 60, index, *near, *far))]
        links = np.concatenate([np.stack(pair, 1) for pair in pairs])
        return links[links[:, 0] != links[:, 1]], [f"folder {v}" for v in (page // 20).tolist()]
    if name == "shop":
        user = rng.integers(0, 400, 3600)
        taste = np.where(rng.random(3600) < 0.7, user % 6, rng.integers(0, 6, 3600))
        item = 400 + 6 * rng.integers(0, 50, 3600) + taste
        labels = [f"user {v % 6}" for v in range(400)] + [f"item {v % 6}" for v in range(300)]
        return np.stack((user, item), 1), labels
    groups, share = {"blocks": (6, 0.45), "cycle": (6, 0.8), "unlike": (3, 0.9)}[name]
    source, by_chance = rng.integers(0, 600, 4800), rng.random(4800) >= share
    step = np.full(4800, name == "cycle", np.int64)
    if name == "unlike":
        step = rng.integers(1, groups, 4800)
    step[by_chance] = rng.integers(0, groups, int(by_chance.sum()))
    target = groups * rng.integers(0, 600 // groups, 4800) + (source + step) % groups
    return np.stack((source, target), 1), [f"group {v % groups}" for v in range(600)]


def source_of(name: str, folder: Path) -> Source:
    """The files of a graph, those that are made in a folder."""
    links, labels = folder / "links.tsv", folder / "labels.tsv"
    if name in MADE:
        pairs, names = made(name)
        np.savetxt(links, pairs, "%d", "\t")
        labels.write_text("".join(f"{node}\t{label}\n" for node, label in enumerate(names)))
        return Source(links, labels)
    if name == "social":
        return Source(social(links))
    if name == "cit-hepph":
        return Source(DATA / "cit-HepPh" / "cit-HepPh.txt.gz")
    place = DATA / ("cora-linqs" if name == "cora" else name)
    if name == "wikispeedia":
        return Source(place / "links.tsv", place / "categories.tsv")
    if name == "cora":
        return Source(place / "cora.cites", place / "labels.tsv", columns=(2, 1))
    if name == "polblogs":
        return Source(place / "edges.tsv", place / "labels.tsv", label_columns=(1, 3))
    rows = folders(place / "hollins_urls.txt")
    labels.write_text("".join(f"{page}\t{label}\n" for page, label in rows))
    return Source(place / "hollins_edges.txt", labels)


def stored(name: str, folder: Path) -> tuple[Graph, Labels | None]:
    """A graph, stored in a folder, and its labels."""
    source = source_of(name, folder)
    graph = cocite.ingest(source.links, folder / "graph", columns=source.columns)
    if source.labels is None:
        return graph, None
    return graph, read_labels(source.labels, graph.names, source.label_columns, separator="")


# -- peers -------------------------------------------------------------------------------


def either_way(graph: Graph) -> tuple[sp.csr_matrix, Matrix]:
    """The symmetric matrix of links, without those of nodes with themselves, and its row sums."""
    sources, offsets = graph.in_sources.astype(np.int64), graph.in_offsets.astype(np.int64)
    shape = graph.nodes, graph.nodes
    links = sp.csr_matrix((np.ones(sources.size, np.float32), sources, offsets), shape)
    found = (links + links.T).tocsr()
    found.setdiag(0)
    found.eliminate_zeros()
    return found, np.maximum(np.asarray(found.sum(axis=1)).ravel(), 1.0)


def factors(matrix: Any, power: float, dimensions: int = max(DIMENSIONS)) -> Matrix:
    """The largest singular vectors, each times a power of its value."""
    from sklearn.utils.extmath import randomized_svd  # others of this module do not wait for it

    count = min(dimensions, matrix.shape[0] - 1)
    left, values, _ = randomized_svd(matrix, count, n_iter=6, random_state=0)
    found: Matrix = (left * values**power).astype(np.float32)
    return found


def spectral(links: sp.csr_matrix, degrees: Matrix, dimensions: int = max(DIMENSIONS)) -> Matrix:
    """Singular vectors of D**(-1/2) A D**(-1/2)."""
    roots = sp.diags(degrees**-0.5)
    return factors(roots @ links @ roots, 1.0, dimensions)


def netmf(links: sp.csr_matrix, degrees: Matrix, window: int) -> Matrix:
    """Those of log(max(1, volume / window * sum over r of (D**(-1) A)**r D**(-1))), r <= window."""
    step = (sp.diags(1 / degrees) @ links).tocsr()
    if window == 1:  # 0 where no link is
        found = step @ sp.diags(degrees.sum() / degrees)
        found.data = np.log(np.maximum(found.data, 1))
        return factors(found, 0.5)
    power = total = step.toarray()
    for _ in range(window - 1):
        power = step @ power
        total = total + power
    return factors(np.log(np.maximum(degrees.sum() / window * total / degrees, 1)), 0.5)


def log_ppr(links: sp.csr_matrix, degrees: Matrix, restart: float = 0.15) -> Matrix:
    """Those of log(max(1, volume * PPR D**(-1)))."""
    steps = np.eye(degrees.size, dtype=np.float32)
    steps -= (1 - restart) * (sp.diags(1 / degrees) @ links).toarray()
    found = restart * np.linalg.inv(steps)
    return factors(np.log(np.maximum(degrees.sum() * found / degrees, 1)), 0.5)


def prone(links: sp.csr_matrix, degrees: Matrix, mu: float = 0.2, theta: float = 0.5) -> Matrix:
    """Those of the links less negative samples; then a band-pass filter of the graph."""
    step = (sp.diags(1 / degrees) @ links).tocoo()
    noise = degrees**0.75 / (degrees**0.75).sum()
    values = np.log(step.data) - np.log(noise[step.col])
    before = factors(sp.csr_matrix((values, (step.row, step.col)), step.shape), 0.5)
    closed = (links + sp.identity(degrees.size)).tocsr()
    filtered = (1 - mu) * sp.identity(degrees.size) - sp.diags(1 / (degrees + 1)) @ closed
    vectors, now = before, 0.5 * (filtered @ (filtered @ before)) - before
    total = iv(0, theta) * before - 2 * iv(1, theta) * now
    for i in range(2, 10):
        before, now = now, filtered @ (filtered @ now) - 2 * now - before
        total += (2 if i % 2 == 0 else -2) * iv(i, theta) * now
    left, values, _ = np.linalg.svd(closed @ (vectors - total), full_matrices=False)
    found: Matrix = (left * np.sqrt(values)).astype(np.float32)
    return found


PEERS: dict[str, tuple[float, Callable[[sp.csr_matrix, Matrix], Matrix]]] = {
    "spectral": (1.0, spectral),
    "NetMF 1": (0.5, lambda links, degrees: netmf(links, degrees, 1)),
    "NetMF 10": (0.5, lambda links, degrees: netmf(links, degrees, 10)),
    "ProNE": (0.5, prone),
    "log-PPR": (0.5, log_ppr),
}
"""Vectors of most dimensions, each times a power of its value."""


def variants(graph: Graph, ids: NDArray[np.uint32]) -> Iterator[tuple[str, str, Ranker]]:
    """Peers, and what of the grid they are: "" for the defaults, which come first. Vectors have
    links either way and the largest cosine; Adamic-Adar counts common neighbors by 1 / log(degree).
    """
    links, degrees = either_way(graph)
    for name, (usual, peer) in PEERS.items():
        vectors = peer(links, degrees)
        values = np.linalg.norm(vectors, axis=0) ** (1 / usual)
        grid = [(d, p) for d in DIMENSIONS for p in POWERS]
        for d, p in sorted(grid, key=lambda point: point != (DEFAULT_DIMENSIONS, usual)):
            chosen = vectors[:, :d] * (values[:d] ** (p - usual)).astype(np.float32)
            default = (d, p) == (DEFAULT_DIMENSIONS, usual)
            yield name, "" if default else f"{d}, power {p:g}", VectorRanker(chosen, ids)
    linked = (links > 0).astype(float)
    counts = np.asarray(linked.sum(axis=1)).ravel()
    rare = sp.diags(np.where(counts > 1, 1 / np.log(np.maximum(counts, 2)), 0)) @ linked
    common = lambda node: (linked[node] @ rare).toarray().ravel()  # noqa: E731
    yield "Adamic-Adar", "", RowRanker(common, graph.nodes, ids)
    if find_spec("gensim"):
        yield "DeepWalk", "", VectorRanker(embed(graph, "walks", DEFAULT_DIMENSIONS), ids)


# -- measuring ---------------------------------------------------------------------------


def quality(graph: Graph, labels: Labels, queries: int, folder: Path) -> Row:
    """The figures of all methods, and how far fusion is above the best peer."""
    asked = sample_pages(labels.labeled, queries, 1)
    choose = np.arange(asked.size) % 2 == 0
    judge = Judge(asked, relevance=labels.collapsed(), cutoffs=CUTOFFS, longest=max(CUTOFFS))
    bootstrap, ids = Bootstrap(int((~choose).sum())), labels.labeled
    best: dict[str, tuple[str, Judgment]] = {}
    defaults: dict[str, Row] = {}

    def figures(found: Judgment) -> Row:
        own = [title for title in judge.titles if "@" in title]
        return {title: found.of(~choose).value(title) for title in own}

    for measure in MEASURES:
        index = cocite.build(graph, folder / measure, measure=measure, threads=1)
        best[measure] = "", judge(IndexRanker(index, ids))
    sizes = {}
    for size in SIZES:
        index = cocite.build(graph, folder / size, measure="fusion", size=size, threads=1)
        precision = judge(IndexRanker(index, ids)).of(~choose).value(DECIDES)
        sizes[size] = {"precision": precision, "bytes": index.stored.store.nbytes / graph.nodes}
    for name, variant, ranker in variants(graph, ids):
        found = judge(ranker)
        if not variant:
            defaults[name] = figures(found)
        known = best.get(name)
        if known is None or found.of(choose).value(DECIDES) > known[1].of(choose).value(DECIDES):
            best[name] = variant, found
    peers = [name for name in best if name not in MEASURES]
    first = max(peers, key=lambda name: best[name][1].of(choose).value(DECIDES))
    ours, theirs = (best[name][1].of(~choose) for name in ("fusion", first))
    return {
        "questions": int((~choose).sum()),
        "best": first,
        "chosen": {name: variant for name, (variant, _) in best.items() if variant},
        "figures": {name: figures(found) for name, (_, found) in best.items()},
        "defaults": defaults,
        "sizes": sizes,
        "less the best": ours.differences(theirs, bootstrap),
    }


def seconds(graph: Graph, folder: Path) -> dict[str, float]:
    """CPU seconds of all top-20 lists of fusion and of the spectral embedding."""
    index = cocite.build(graph, folder / "warm", measure="fusion", threads=1)
    index.related_all(folder / "warm.parquet", LISTED, threads=1, nodes=[graph.names.name(0)])
    spectral(*either_way(graph), 2)  # imports, as those of the index are done
    begin = time.process_time()
    index = cocite.build(graph, folder / "timed", measure="fusion", threads=1)
    index.related_all(folder / "all.parquet", LISTED, threads=1)
    ours, begin = time.process_time() - begin, time.process_time()
    vectors = spectral(*either_way(graph), DEFAULT_DIMENSIONS)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
    for low in range(0, graph.nodes, 256):
        scores = vectors[low : low + 256] @ vectors.T
        top = np.argpartition(scores, -LISTED - 1, axis=1)[:, -LISTED - 1 :]
        np.argsort(-np.take_along_axis(scores, top, 1), axis=1)
    return {"fusion": ours, "spectral": time.process_time() - begin}


def measured(name: str, queries: int) -> Row:
    """A row of the tables."""
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as place, threadpool_limits(1):
        folder = Path(place)
        graph, labels = stored(name, folder)
        row: Row = {"nodes": graph.nodes, "links": graph.edges}
        row["seconds"] = seconds(graph, folder)
        return row if labels is None else row | quality(graph, labels, queries, folder)


# -- tables ------------------------------------------------------------------------------


def table(results: dict[str, Row]) -> str:
    """The block of ``docs/evaluation.md``."""
    places = {name: place for place, name in enumerate((*GRAPHS, "social"))}
    rows = dict(sorted(results.items(), key=lambda item: places[item[0]]))
    titles = [*MEASURES, "best peer", "precision@10", "nDCG@50", "recall@50", "seconds"]
    lines = ["| graph | " + " | ".join(titles) + " |", "| --- |" + " --- |" * len(titles)]
    for name, row in rows.items():
        took = "{fusion:.1f}, {spectral:.1f}".format(**row["seconds"])
        cells = _quality(row) if "best" in row else [""] * (len(titles) - 1)
        lines.append(f"| {name} | " + " | ".join([*cells, took]) + " |")
    lines += ["", "| graph | " + " | ".join(SIZES) + " |", "| --- |" + " --- |" * len(SIZES)]
    for name, row in rows.items():
        own = row.get("sizes", {}).values()
        cells = [f"{_digits(each['precision'])}, {each['bytes']:,.0f}" for each in own]
        lines += [f"| {name} | " + " | ".join(cells) + " |"] if cells else []
    machines = dict.fromkeys(f"{row['date']}, {row['machine']}" for row in rows.values())
    return "\n".join([*lines, "", "; ".join(machines) + "."])


def _quality(row: Row) -> list[str]:
    """Figures filled, those as lists end in brackets if they differ; differences, with intervals
    or bold if they are beyond them.
    """
    figures, less = row["figures"], row["less the best"]
    cells = []
    for name in (*MEASURES, row["best"]):
        filled, ended = (_digits(figures[name][title]) for title in (DECIDES, "precision@10"))
        cells.append(filled if filled == ended else f"{filled} ({ended})")
    cells[-1] = f"{row['best']} {cells[-1]}"
    value, low, high = less[DECIDES]
    cells.append(f"{_signed(value)} ±{_digits((high - low) / 2)}")
    for value, low, high in (less[title] for title in SHOWN[1:]):
        cells.append(f"**{_signed(value)}**" if low * high > 0 else _signed(value))
    return cells


def _digits(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _signed(value: float) -> str:
    return ("−" if value < 0 else "+") + _digits(abs(value))


BLOCK = Block("embeddings", ROOT / "docs/evaluation.md", "<!-- end of embeddings -->", table)


def main() -> None:
    """Measure, print, and keep and write what was asked for."""
    parser = BLOCK.parser(__doc__)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS, choices=(*GRAPHS, "social"))
    parser.add_argument("--queries", type=int, default=1200, help="half choose, half judge")
    chosen = parser.parse_args()
    saved = json.loads(BLOCK.results.read_text()) if BLOCK.results.exists() else {}
    for name in chosen.graphs:
        saved[name] = run_today() | measured(name, chosen.queries)
        print(json.dumps({name: saved[name]}), flush=True)
        edit(BLOCK.results, json.dumps(saved, indent=1) + "\n", write=chosen.write)
    print(table(saved))
    edit(BLOCK.document, BLOCK.within(BLOCK.document.read_text(), saved), write=chosen.write)


if __name__ == "__main__":
    main()
