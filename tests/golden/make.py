"""The golden files: small graphs, an index of every layout, and their answers.

``python -m tests.golden.make`` writes the folder of this release's format; once written, it never
changes. ``make_all`` writes the same files anywhere, so that tests can compare bytes.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cocite
from cocite import Graph, Index
from cocite.errors import UsageError
from cocite.storage import FORMAT_VERSION

HERE = Path(__file__).parent
DAY = "2026-11-21"
_NOON = 1_795_262_400  # UTC, of DAY

PAGES = ["hub", "Zebra", "Horse", "Okapi", "Africa", "Zoo", "Lion", "Grass", "Ünïcode", "a b"]
GNU = "Gnu"  # added later
LINKS = [
    *[(0, page) for page in range(1, 8)],
    (1, 2), (2, 1), (1, 4), (3, 4), (6, 4), (5, 1), (5, 3), (5, 6), (4, 7), (1, 7), (2, 7),
    (8, 1), (8, 2), (9, 8), (7, 4), (3, 1),
]  # fmt: skip
LATER = [*LINKS[:-3], (9, 1), (6, 1), (4, 0), (10, 1), (10, 2), (0, 10)]
TEXTS = [
    ("Zebra", "stripes, stripes: a horse with stripes\n"),
    ("Horse", "no stripes; Grass\n"),
    ("Grass", "green, no stripes\n"),
    ("Okapi", "STRIPES of its own; eats leaves, and grass\n"),
    ("Lion", "eats a zebra, or a horse\n"),
    ("Africa", "Zèbre, okapi, lion, grass\n"),
]
WEIGHTS = [1 + (3 * number) % 5 for number in range(len(LINKS))]

NAMES: dict[str, Callable[[int], str]] = {
    "text": PAGES.__getitem__,
    "integers": lambda page: str(7 * page + 3),
    "dense": str,
    "urls": lambda page: f"http://{'ab'[page % 2]}.example/{'x/' * (page % 3)}{page}",
}

INDEXES: dict[str, tuple[str, dict[str, Any]]] = {
    "trees": ("text", {}),
    "trees-out": ("dense", {"direction": "out", "measure": "simrank"}),
    "trees-both": ("integers", {"direction": "both", "measure": "simrank"}),
    "trees-weighted": ("weighted", {"measure": "simrank"}),
    "trees-hubs": ("text", {"hubs": "idf"}),
    "paths": ("text", {"layout": "paths"}),
    "packed": ("text", {"layout": "packed"}),
    "compact": ("text", {"measure": "compact-simrank"}),
    "minhash": ("text", {"measure": "xjaccard"}),
    "sketch": ("text", {"measure": "xjaccard", "bits": 4}),
    "features": ("text", {"measure": "pagesim"}),
    "nearest": ("text", {"measure": "snn", "max_degree": 10_000}),
    "rows": ("text", {"measure": "fusion"}),
    "text": ("text", {"measure": "tfidf", "min_df": 1, "max_df": 1.0, "words": 4}),
    "links-cocitation": ("text", {"measure": "cocitation"}),
    "links-coupling": ("integers", {"measure": "coupling"}),
    "links-ppr": ("weighted", {"measure": "ppr"}),
    "refined": ("text", {"measure": "simrank", "refine": True}),
    "blend": (
        "text",
        {"measure": "blend:0.6*psimrank(direction=both)+0.3*psimrank(length=4)+0.1*cocitation"},
    ),
    "urls": ("urls", {}),
    "sketch-out": ("dense", {"measure": "xjaccard", "bits": 3, "direction": "out"}),
    "trees-clocks": ("weighted", {}),
    "refreshed": ("text", {}),
    "refreshed-minhash": ("text", {"measure": "xjaccard"}),
}
"""Name -> graph and build options. Measures that walk get 20 samples."""


def make_all(folder: Path) -> None:
    """Make all graphs and indexes in ``folder``."""
    graphs: dict[str, Graph] = {}
    for kind, to_name in NAMES.items():
        graphs[kind] = _graph(folder, kind, [f"{to_name(u)}\t{to_name(v)}" for u, v in LINKS])
    rows = [f"{PAGES[u]}\t{PAGES[v]}\t{w}" for (u, v), w in zip(LINKS, WEIGHTS, strict=True)]
    graphs["weighted"] = _graph(folder, "weighted", rows, weight_column=3)
    pages = [*PAGES, GNU]
    graphs["later"] = _graph(folder, "later", [f"{pages[u]}\t{pages[v]}" for u, v in LATER])
    for name, (graph, options) in INDEXES.items():
        settings = {"measure": "psimrank"} | options
        settings |= {"samples": 20} if _walks(options) else {}
        texts = folder / "texts.tsv"
        texts.write_text("".join(map("\t".join, TEXTS)), "utf-8")
        settings |= {"texts": texts} if "tfidf" in str(settings["measure"]) else {}
        output = folder / "indexes" / name
        cocite.build(graphs[graph], output, shard=8 if _walks(options) else None, **settings)
        if name.startswith("refreshed"):
            os.utime(output / "manifest.json", (_NOON, _NOON))  # the day of the build
            cocite.refresh(output, graphs["later"], fraction=0.25, date=DAY, force=True)
        texts.unlink()


def _graph(folder: Path, name: str, rows: list[str], **options: Any) -> Graph:
    links = folder / f"{name}.tsv"
    links.parent.mkdir(parents=True, exist_ok=True)
    links.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    graph = cocite.ingest(links, folder / "graphs" / name, **options)
    links.unlink()
    return graph


def _walks(options: dict[str, Any]) -> bool:
    exact = ("pagesim", "snn", "fusion", "cocitation", "coupling", "ppr", "tfidf")
    return options.get("measure", "psimrank") not in exact


def answers(index: Index) -> dict[str, Any]:
    """Return the answers for three pages, without intervals, which do not depend on files."""
    names = [index.nodes.name(page) for page in (1, 2, 4)]
    try:
        why = index.why(names[0], names[1], 3)
    except UsageError:
        reasons = None  # a sketch does not know
    else:
        reasons = [reason._asdict() for reason in why.reasons]
    return {
        "nodes": list(index.nodes),
        "related": {name: [hit[:3] for hit in index.related(name, 5)] for name in names},
        "similarity": [index.similarity(names[0], name)[:2] for name in names],
        "why": reasons,
    }


def main() -> None:
    """Make the folder of the current format."""
    folder = HERE / f"format-{FORMAT_VERSION}"
    if folder.exists():
        sys.exit(f"{folder} is there: golden files never change. See {HERE / 'README.md'}")
    make_all(folder)
    described = {name: answers(cocite.open(folder / "indexes" / name)) for name in INDEXES}
    text = json.dumps(described, ensure_ascii=False, indent=1) + "\n"
    (folder / "answers.json").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
