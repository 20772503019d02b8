"""Small stores of every kind, to be harmed: a graph of each kind of names, an index of each layout
and measure.

    python -m tests.torture.stores FOLDER      makes all stores

There are 40 nodes, so that names take three blocks; URLs and other names, titles, texts, weighted
and unweighted links. Indexes are refreshed from the graph ``newer``.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

import cocite
from cocite import Graph

NAMES = [f"http://s{i % 5}.org/p{i}" for i in range(24)] + [f"page {i}" for i in range(16)]
NEWER, NEWER_WEIGHTED = "newer.graph", "newer-weighted.graph"
"""Graphs that indexes are refreshed from; not harmed."""
PIECE = "piece.index"
"""The index that ``trees`` is merged with; not harmed."""
_WALKS = {"samples": 6, "length": 5, "shard": 4}
INDEXES: dict[str, dict[str, Any]] = {
    "trees": {**_WALKS, "measure": "psimrank"},
    "both": {**_WALKS, "direction": "both", "measure": "simrank", "refine": True},
    "weighted": {**_WALKS, "measure": "psimrank"},
    "paths": {**_WALKS, "measure": "psimrank", "layout": "paths"},
    "packed": {**_WALKS, "measure": "psimrank", "layout": "packed"},
    "compact": {**_WALKS, "measure": "compact-simrank"},
    "minhash": {**_WALKS, "length": 3, "measure": "xjaccard"},
    "sketch": {**_WALKS, "length": 3, "measure": "xjaccard", "bits": 2},
    "cocitation": {"measure": "cocitation"},
    "coupling": {"measure": "coupling", "unweighted": True},
    "ppr": {"measure": "ppr"},
    "ppr-symmetric": {"measure": "ppr-symmetric"},
    "companion": {"measure": "companion"},
    "features": {"measure": "pagesim", "normalized": True},
    "nearest": {"measure": "snn", "neighbors": 6},
    "neighborhood": {"measure": "neighborhood"},
    "rows": {"measure": "fusion", "size": "small"},
    "text": {"measure": "tfidf", "min_df": 1, "max_df": 1.0},
    "blend": {"measure": "blend:psimrank+cocitation(idf=true)+xjaccard(bits=1)", "samples": 6},
    "kept": {**_WALKS, "measure": "psimrank", "only_prefix": "page"},
    "refreshed": {**_WALKS, "measure": "psimrank"},
}
"""Name -> options of a build; those in :data:`WEIGHTED` use the weighted graph."""
WEIGHTED = "weighted", "ppr"


def _rows(seed: int, names: list[str]) -> list[str]:
    rng = np.random.default_rng(seed)
    count = len(names)
    pairs = {(a, b) for a, b in rng.integers(0, count, (4 * count, 2)).tolist() if a != b}
    return [f"{names[a]}\t{names[b]}\t{1 + a % 3}" for a, b in sorted(pairs)]


def _graph(folder: Path, name: str, rows: list[str], **options: Any) -> Graph:
    links = folder / f"{name}.tsv"
    links.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    options = {"delimiter": "tab", "header": "no", "columns": "1,2"} | options
    return cocite.ingest(links, folder / f"{name}.graph", **options)


def make_stores(folder: Path) -> None:
    """Make all stores in ``folder``, with the suffixes ``.graph`` and ``.index``."""
    folder.mkdir(parents=True, exist_ok=True)
    titles, texts = folder / "titles.tsv", folder / "texts.tsv"
    titles.write_text("".join(f"{n}\tTitle öf {i}\n" for i, n in enumerate(NAMES[::2])), "utf-8")
    texts.write_text(
        "".join(f"{n}\twords of {i} {i % 7} zebra{i % 3}\n" for i, n in enumerate(NAMES)), "utf-8"
    )
    rows = _rows(1, NAMES)
    plain = _graph(folder, "plain", rows, titles=[titles])
    weighted = _graph(folder, "weighted", rows, weight_column="3")
    _graph(folder, "dense", _rows(3, [str(i) for i in range(40)]))
    _graph(folder, "integers", _rows(4, [str(7 * i + 3) for i in range(40)]))
    later = _rows(2, [*NAMES, "one more"])
    newer = _graph(folder, NEWER.removesuffix(".graph"), later)
    _graph(folder, NEWER_WEIGHTED.removesuffix(".graph"), later, weight_column="3")
    for name, options in INDEXES.items():
        build_options = options | ({"texts": texts} if options.get("measure") == "tfidf" else {})
        cocite.build(
            weighted if name in WEIGHTED else plain, folder / f"{name}.index", **build_options
        )
    piece: dict[str, Any] = {"length": 5, "shard": 4, "measure": "psimrank", "numbers": range(6, 9)}
    cocite.build(plain, folder / PIECE, **piece)
    cocite.refresh(folder / "refreshed.index", newer, fraction=0.5, force=True)


def harmed(folder: Path) -> list[Path]:
    """The stores in ``folder`` to harm."""
    spared = NEWER, NEWER_WEIGHTED, PIECE
    paths = (path for path in folder.iterdir() if path.suffix in (".graph", ".index"))
    return sorted(path for path in paths if path.name not in spared)


def copied(store: Path, folder: Path) -> Path:
    """A copy in a new ``folder``, with hard links to the files except the manifest."""
    folder.mkdir(parents=True)
    path = folder / store.name
    shutil.copytree(store, path, copy_function=_link)
    return path


def _link(source: str, target: str) -> None:
    if source.endswith("manifest.json"):
        shutil.copyfile(source, target)
    else:
        Path(target).hardlink_to(source)


if __name__ == "__main__":
    make_stores(Path(sys.argv[1]))
