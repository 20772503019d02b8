"""Golden files: small graphs and indexes of everything that the format has, made in one way.

    python -m tests.golden.make

makes those of this release's format, with what they answer, and refuses if they are there already:
golden files are kept for ever. README.md says when that is to be done.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import cocite
from cocite import Graph, Index
from cocite.cli.main import main
from cocite.errors import UsageError
from cocite.store import FORMAT_VERSION

__all__ = ["ANSWERS", "FOLDER", "GRAPHS", "INDEXES", "answers_of", "make", "names_of"]

FOLDER = Path(__file__).parent
ANSWERS = "answers.json"
_BUILT, _DAY = 1_767_225_600, "2026-02-03"
"""When indexes were built that are refreshed, in seconds since 1970 (2026-01-01), and then."""
_NODES, _K = 24, 4


def _names(kind: str) -> list[str]:
    """The names of the nodes: as text URLs, whose order is not that of their text, and others."""
    if kind == "dense":
        return list(map(str, range(_NODES)))
    if kind == "integers":
        return [str(i * i + 5) for i in range(_NODES)]
    urls = [f"http://{host}.example.org/{i}" for i, host in enumerate(["b", "a", "c"] * 4)]
    return [*urls, *(f"page {i}" for i in range(8)), "é", "日本", "Ω", "z" * 70]


def _links(step: int) -> list[tuple[int, int]]:
    """A web of three neighbourhoods with a hub: no chance in it."""
    near = {(i, i // 8 * 8 + (i * k + k) % 8) for i in range(_NODES) for k in (1, 2, step)}
    far = {(i, (7 * i + step) % _NODES) for i in range(0, _NODES, 2)}
    hub = {(i, 3) for i in range(1, _NODES, 3)}
    return sorted((a, b) for a, b in near | far | hub if a != b and b % 11)


def _text(kind: str, step: int, weighted: bool = False) -> str:
    names = _names(kind)
    rows = [(names[a], names[b], 1 + (a * b) % 7 / 4) for a, b in _links(step)]
    return "".join(f"{a}\t{b}" + (f"\t{w}" if weighted else "") + "\n" for a, b, w in rows)


GRAPHS: dict[str, str] = {
    "text": _text("text", 3),
    "newer": _text("text", 5).replace("page 3", "page new").replace("Ω", "page 7b"),
    "weighted": _text("text", 3, weighted=True),
    "integers": _text("integers", 3),
    "dense": _text("dense", 3),
}
"""Their links. ``newer`` is ``text`` later: some links are others, two nodes gone, two new."""

_WALKS: dict[str, Any] = {"samples": 5, "length": 4, "seed": 7}
INDEXES: dict[str, tuple[str, dict[str, Any]]] = {
    "trees": ("text", _WALKS),
    "trees-both": ("integers", {**_WALKS, "measure": "simrank", "direction": "both", "shard": 2}),
    "trees-hubs": ("dense", {**_WALKS, "hubs": "idf", "direction": "out"}),
    "trees-weighted": ("weighted", {**_WALKS, "measure": "simrank", "hubs": "rare"}),
    "clock-weighted": ("weighted", _WALKS),
    "paths": ("integers", {**_WALKS, "layout": "paths"}),
    "compact": ("dense", {**_WALKS, "measure": "compact-simrank", "direction": "both"}),
    "minhash": ("text", {**_WALKS, "measure": "xjaccard", "length": 2, "direction": "both"}),
    "sketch": ("dense", {**_WALKS, "measure": "xjaccard", "length": 2, "bits": 3}),
    "sketch-out": ("text", {**_WALKS, "measure": "xjaccard", "bits": 1, "direction": "out"}),
    "cocitation": ("text", {"measure": "cocitation", "direction": "both"}),
    "coupling": ("integers", {"measure": "coupling"}),
    "ppr": ("dense", {"measure": "ppr"}),
    "ppr-weighted": ("weighted", {"measure": "ppr", "direction": "in"}),
    "features": ("integers", {"measure": "pagesim", "radius": 2}),
    "nearest": ("text", {"measure": "shared-nearest", "nearest": 4}),
    "nearest-in": ("dense", {"measure": "shared-nearest", "nearest": 3, "direction": "in"}),
    "blend": (
        "text",
        {
            **_WALKS,
            "measure": "blend:0.5*psimrank(hubs=idf,decay=0.5)+0.3*cocitation(idf=true,"
            "direction=out)+0.2*xjaccard(bits=2,direction=both)+0.1*xjaccard(length=1)",
        },
    ),
    "refined": ("dense", {**_WALKS, "measure": "simrank", "direction": "both", "refine": True}),
    "refreshed": ("text", _WALKS),
    "refreshed-minhash": ("text", {**_WALKS, "measure": "xjaccard", "length": 2, "shard": 2}),
}
"""Of which graph each index is, and how it is built; ``refreshed...`` from ``newer`` then."""


def make(folder: Path) -> None:
    """Make all graphs and indexes, and what they answer, in an empty folder."""
    for name, text in GRAPHS.items():
        links = folder / f"{name}.tsv"
        links.write_text(text, "utf-8")
        weights = "3" if name == "weighted" else None
        output = folder / "graphs" / name
        cocite.ingest(links, output, delimiter="tab", header="no", weight_column=weights)
        links.unlink()
    for name, (graph, options) in INDEXES.items():
        output = folder / "indexes" / name
        cocite.build(folder / "graphs" / graph, output, **options)
        if name.startswith("refreshed"):
            os.utime(output / "manifest.json", (_BUILT, _BUILT))
            cocite.refresh(output, folder / "graphs" / "newer", share=0.4, date=_DAY)
    found = {name: answers_of(folder, name) for name in INDEXES}
    found |= {f"graph {name}": names_of(Graph.open(folder / "graphs" / name)) for name in GRAPHS}
    text = json.dumps(found, indent=1, ensure_ascii=False)
    (folder / ANSWERS).write_text(text + "\n", "utf-8")


def names_of(graph: Graph | Index) -> dict[str, Any]:
    """What a graph or an index says of its names."""
    names = graph.names if isinstance(graph, Graph) else graph.nodes
    return {
        "names": list(names),
        "ids": [names.id(name) for name in names],
        "complete": {prefix: names.complete(prefix) for prefix in ("page", "http://", "1", "")},
        "nearest": names.nearest("pgae 1"),
    }


def answers_of(folder: Path, name: str) -> dict[str, Any]:
    """What an index answers, as JSON has it: scores, errors and reasons of some nodes."""
    index = cocite.open(folder / "indexes" / name)
    found = {"settings": index.settings, **names_of(index)}
    for node in list(index.nodes)[::5]:
        hits = index.related(node, _K)
        found[f"related {node}"] = [[hit.node, hit.score, hit.stderr] for hit in hits]
        if name == "refined":
            refined = index.related(node, _K, refine=True)
            found[f"refined {node}"] = [[hit.node, hit.score, hit.low, hit.high] for hit in refined]
        for hit in hits[:2]:
            score, error, *_ = index.similarity(node, hit.node)
            found[f"similarity {node} {hit.node}"] = [score, error]
            found[f"why {node} {hit.node}"] = _reasons(index, node, hit.node)
    return found


def _reasons(index: Index, first: str, second: str) -> Any:
    try:
        why = index.why(first, second)
    except UsageError as error:  # sketches do not know
        return str(error)
    reasons = [[r.node, r.share, r.links, r.path_a, r.path_b] for r in why.reasons]
    told = json.loads(json.dumps(reasons))
    return {"score": why.score, "reasons": told, "rest": why.rest, "unplaced": why.unplaced}


def _run() -> int:
    folder = FOLDER / f"format-{FORMAT_VERSION}"
    if folder.exists():
        print(f"{folder} exists: golden files are kept for ever. See README.md there")
        return 1
    folder.mkdir()
    make(folder)
    return max(main(["verify", str(path)]) for path in sorted(folder.glob("*/*")))


if __name__ == "__main__":
    sys.exit(_run())
