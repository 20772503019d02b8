"""``cocite info``: what a stored graph or index holds."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from cocite.cli.options import format_option
from cocite.cli.output import print_facts
from cocite.graph import Graph
from cocite.memory import format_size
from cocite.store import kind_of

if TYPE_CHECKING:
    from cocite.index import StoredIndex

__all__ = ["info", "print_graph"]


@click.command()
@click.argument("path", metavar="GRAPH|INDEX")
@format_option
def info(path: str, form: str) -> None:
    """Show what the stored graph or index at the path holds."""
    if kind_of(path) == "index":
        print_index(path, form)
    else:
        print_graph(Graph.open(path), form)


def print_graph(graph: Graph, form: str) -> None:
    """The facts of a graph."""
    found = graph.info()
    mean = found.edges / found.nodes if found.nodes else 0.0

    def most(degree: int, node: str | None) -> str:
        return f"{degree:,} ({node})" if degree else "0"

    weights = {}
    if graph.in_weights is not None:
        weights["weights"] = (
            f"{found.smallest_weight or 0:.7g} to {found.largest_weight or 0:.7g}, "
            f"{found.total_weight:,.7g} in all"
        )
    print_facts(
        {"kind": "graph", "path": str(graph.path)}
        | asdict(found)
        | {"digest": graph.digest, "sources": graph.store.facts["sources"]},
        form,
        {
            "graph": str(graph.path),
            "nodes": f"{found.nodes:,}, named by {found.names}",
            "links": f"{found.edges:,}, {mean:.1f} a node",
            **weights,
            "most linked to": most(found.largest_in_degree, found.largest_in_degree_node),
            "most links": most(found.largest_out_degree, found.largest_out_degree_node),
            "without in-links": f"{found.without_in_links:,}",
            "without out-links": f"{found.without_out_links:,}",
            "isolated": f"{found.isolated:,}",
            "links read": f"{found.rows:,}" + (", stored both ways" if found.undirected else ""),
            "dropped": f"{found.duplicates:,} duplicates, {found.self_loops:,} self-loops, "
            f"{found.bad_rows:,} bad rows",
            "on disk": format_size(found.bytes),
        },
    )


def print_index(path: str, form: str) -> None:
    """The facts of an index."""
    from cocite.index import StoredIndex
    from cocite.index.plan import links_in_words

    index = StoredIndex.open(path)
    links = links_in_words(index.measure, index.direction)
    layouts = list(dict.fromkeys(part.layout for part in index.parts))
    samples, settings = index.samples or 1, index.settings.to_json()
    each = index.store.nbytes / (index.nodes * samples)
    used = "of links, gone by" if index.weighted else "of links, left aside"
    print_facts(
        {
            "kind": "index",
            "path": path,
            "measure": index.measure.name,
            "direction": index.direction,
            "layout": " ".join(layouts),
            "weighted": index.weighted,
            "parts": [part.to_json() for part in index.parts],
            "nodes": index.nodes,
            "settings": settings,
            "graph": index.graph,
            "generations": [g.to_json() for g in index.freshness.generations if g.samples],
            "bytes": index.store.nbytes,
            "refined": index.refined,
            "digest": index.digest,
        },
        form,
        {
            "index": path,
            "measure": f"{index.measure.name}, {links}",
            "layout": " ".join(layouts),
            **_shown_parts(index),
            "nodes": f"{index.nodes:,}",
            **{name: f"{value}" for name, value in settings.items()},
            "graph": f"{index.graph['name']}, {index.graph['edges']:,} links",
            **_shown_ages(index),
            **({"weights": used} if index.graph["weighted"] else {}),
            **_ready(index.refined),
            "on disk": f"{format_size(index.store.nbytes)}, {each:.2f} bytes a node"
            + (" and sample" if index.samples else ""),
        },
    )


def _ready(refined: dict[str, Any]) -> dict[str, str]:
    """What is made ready for refined answers."""
    decays = sorted({facts["decay"] for facts in refined.values()})
    return {"refined": "ready for decay " + ", ".join(map(str, decays))} if decays else {}


def _shown_ages(index: StoredIndex) -> dict[str, str]:
    """A line for each generation of samples, the newest first, if there was a refresh."""
    generations = index.freshness.generations
    if len(generations) == 1 and not generations[0].refresh:
        return {}
    return {
        f"generation {g.refresh}": f"{g.samples:,} samples of {g.date or 'an unknown day'}, "
        f"from {g.graph}"
        for g in reversed(generations)
    }


def _shown_parts(index: StoredIndex) -> dict[str, str]:
    """A line for each part of a blend: its share, its links, and what differs from the blend's."""
    from cocite.graph.links import DIRECTIONS

    shown, usual = {}, index.settings.to_json()
    for number, part in enumerate((part for part in index.parts if part.label), 1):
        own = part.settings.to_json() | part.fixed.to_json()
        settings = [f"{k} {v}" for k, v in own.items() if usual.get(k) != v]
        links = DIRECTIONS[part.measure.looks_at(part.direction)]
        words = [f"{part.weight:.4g} of {part.measure.name}", links, part.layout, *settings]
        shown[f"part {number}"] = ", ".join(words)
    return shown
