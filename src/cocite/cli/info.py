"""``cocite info``: what a stored graph or index holds; with ``--cache``, what is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cocite.cli.links import bipartite_option, cache_option, graph_of
from cocite.cli.options import format_option
from cocite.cli.outputs import Reply, Show
from cocite.cli.text import asks_text, counted, facts_text, settings_told, texts_in_words
from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.graph.documents import GraphDocument
from cocite.graph.hubs import hubs_in_words
from cocite.graph.in_blocks import BlockedGraph, is_blocked
from cocite.measures import find_measure
from cocite.measures.blend import PREFIX
from cocite.memory import format_size
from cocite.store import kind_of

if TYPE_CHECKING:
    from cocite.index.documents import IndexDocument

__all__ = ["graph_reply", "info"]


@click.command()
@click.argument("path", metavar="GRAPH|INDEX|LINKS", required=False)
@click.option(
    "--cache",
    is_flag=True,
    help="Show where compiled kernels are kept instead, how large they are, and their versions.",
)
@bipartite_option
@cache_option
@format_option
def info(path: str | None, cache: bool, bipartite: bool, no_cache: bool, show: Show) -> None:
    """Show what the stored graph or index at the path holds, or the graph of a file of links."""
    if cache == (path is not None):
        raise UsageError("name a graph, an index or a file of links, or pass --cache")
    if path is None:
        if bipartite:
            raise UsageError(
                "--bipartite is of a file of links, and --cache shows none: leave one out"
            )
        from cocite.cli.cache import cache_reply

        show(cache_reply())
        return
    if is_blocked(path):
        show(graph_reply(BlockedGraph.open(path)))
        return
    path = graph_of(path, no_cache=no_cache, bipartite=bipartite)
    show(_index_reply(path) if kind_of(path) == "index" else graph_reply(Graph.open(path)))


def graph_reply(graph: Graph) -> Reply:
    """The facts of a graph."""
    found = GraphDocument.of(graph)
    return Reply(found, lambda: _graph_text(found))


def _graph_text(found: GraphDocument) -> str:
    info = found.info
    mean = info.edges / info.nodes if info.nodes else 0.0

    def most(degree: int, node: str | None) -> str:
        return f"{degree:,} ({node})" if degree else "0"

    weights = {}
    if found.weighted:
        weights["weights"] = (
            f"{info.smallest_weight or 0:.7g} to {info.largest_weight or 0:.7g}, "
            f"{info.total_weight:,.7g} in all"
        )
    left_out = {}
    if found.excluded:
        pages, links = (counted(found.excluded[what], what[:-1]) for what in ("nodes", "links"))
        left_out["left out"] = f"{pages}, with {links}"
    hubs = {"hubs": hubs_in_words(found.hubs, info.nodes)} if found.hubs else {}
    return facts_text(
        {
            "graph": found.path,
            "nodes": f"{info.nodes:,}, named by {info.names}",
            **({"sides": found.sides.in_words()} if found.sides else {}),
            "links": f"{info.edges:,}, {mean:.1f} a node",
            **({"blocks": _blocks_text(found.blocks)} if found.blocks else {}),
            **weights,
            **({"titles": _titles_text(found.titles)} if found.titles else {}),
            "most linked to": most(info.largest_in_degree, info.largest_in_degree_node),
            "most links": most(info.largest_out_degree, info.largest_out_degree_node),
            **hubs,
            "without in-links": f"{info.without_in_links:,}",
            "without out-links": f"{info.without_out_links:,}",
            "isolated": f"{info.isolated:,}",
            "links read": f"{info.rows:,}" + (", stored both ways" if info.undirected else ""),
            "dropped": f"{info.duplicates:,} duplicates, {info.self_loops:,} self-loops, "
            f"{info.bad_rows:,} bad rows",
            **left_out,
            "on disk": format_size(info.bytes),
        }
    )


def _blocks_text(blocks: dict[str, int]) -> str:
    """How many there are, and how many of them are here."""
    text = f"{blocks['count']:,}, the largest of {blocks['largest']:,} links"
    here = blocks["here"]
    return text + (f"; {here:,} of them here" if here < blocks["count"] else "")


def _titles_text(titles: dict[str, Any]) -> str:
    """Of how many nodes there are titles, and what became of others."""
    unknown, others = titles["unknown"], titles["others"]
    text = f"of {titles['nodes']:,} nodes"
    if unknown:
        text += f"; {unknown:,} of names that no node has"
    return text + (f"; {others:,} more of nodes that have one" if others else "")


def _index_reply(path: str) -> Reply:
    from cocite.index import StoredIndex
    from cocite.index.documents import IndexDocument

    found = IndexDocument.of(StoredIndex.open(path))
    return Reply(found, lambda: _index_text(found))


def _index_text(found: IndexDocument) -> str:
    used = "used" if found.weighted else "ignored"
    return facts_text(
        {
            "index": found.path,
            "measure": f"{found.measure}, {found.links}",
            "layout": found.layout,
            **_shown_parts(found),
            "nodes": f"{found.nodes:,}",
            **({"sides": found.sides.in_words()} if found.sides else {}),
            **({"keeps": found.kept.in_words(found.nodes)} if found.kept else {}),
            **({"texts": texts_in_words(found.texts, found.nodes)} if found.texts else {}),
            **settings_told(found.settings),
            "graph": f"{found.graph['name']}, {found.graph['edges']:,} links",
            **_shown_ages(found),
            **_shown_numbers(found),
            **({"weights": used} if found.graph["weighted"] else {}),
            **_shown_refined(found),
            **({"by": f"{found.by}, unless a question says otherwise"} if found.by else {}),
            **({"asks": asks_text(found.asks)} if found.asks else {}),
            "on disk": f"{format_size(found.bytes)}, {found.bytes_each:.2f} bytes a node"
            + (" and sample" if found.samples else ""),
        }
    )


def _shown_refined(found: IndexDocument) -> dict[str, str]:
    """What is made ready for refined answers."""
    decays = sorted({facts["decay"] for facts in found.refined.values()})
    return {"refined": "ready for decay " + ", ".join(map(str, decays))} if decays else {}


def _shown_ages(found: IndexDocument) -> dict[str, str]:
    """A line for each generation of samples, the newest first, if there was a refresh."""
    generations = found.generations
    if len(generations) == 1 and not generations[0].refresh:
        return {}
    return {
        f"generation {g.refresh}": f"{g.samples:,} samples of {g.date or 'an unknown day'}, "
        f"from {g.graph}"
        for g in reversed(generations)
    }


def _shown_numbers(found: IndexDocument) -> dict[str, str]:
    """Which samples they are, if not the first ones; a line for each file that is lost."""
    shown, generations = {}, found.generations
    if len(generations) == 1 and generations[0].first and not generations[0].refresh:
        shown["numbers"] = f"{generations[0].first} to {generations[0].numbers.stop - 1}"
    if found.lost:
        shown["answering"] = f"{found.answering:,} samples (see: cocite verify {found.path})"
    for each in found.lost:
        numbers = f"samples {each.first} to {each.first + each.samples - 1}"
        shown["lost"] = "; ".join(filter(None, (shown.get("lost"), f"{each.file}, {numbers}")))
    return shown


def _shown_parts(found: IndexDocument) -> dict[str, str]:
    """A line for each part of a blend: its share, its links, and what differs from the blend's."""
    from cocite.index.plan import links_in_words

    shown: dict[str, str] = {}
    if not found.measure.startswith(PREFIX):
        return shown
    for number, part in enumerate(found.parts, 1):
        own = {**part["settings"], **part["fixed"]}
        settings = [f"{k} {v}" for k, v in own.items() if found.settings.get(k) != v]
        links = links_in_words(find_measure(part["measure"]), part["direction"])
        share = f"{part['weight']:.4g} of {part['measure']}"
        shown[f"part {number}"] = ", ".join([share, links, part["layout"], *settings])
    return shown
