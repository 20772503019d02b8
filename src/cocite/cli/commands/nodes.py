"""``cocite nodes``: find nodes by part of their names, and list their links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cocite.cli.console import say
from cocite.cli.inputs import graph_of
from cocite.cli.options import format_option, takes
from cocite.cli.output import Reply, Show, names_text
from cocite.errors import UsageError
from cocite.options.common import QuerySource

if TYPE_CHECKING:
    from cocite.search.resolver import FoundNode, NodesDocument


_SHOWN = 10


_SIDE = {
    "text": "For bipartite graphs: list only nodes of this side, such as item.",
    "unset": "both",
}


@click.command()
@click.argument("path", metavar="GRAPH|INDEX|LINKS")
@click.argument("text", metavar="[TEXT]", required=False)
@click.option(
    "--search",
    metavar="TEXT",
    help="The same as TEXT.",
)
@click.option(
    "--links", is_flag=True, help="Show which nodes link to them, and which they link to."
)
@click.option(
    "-k", type=click.IntRange(1), default=20, show_default=True, help="How many nodes to show."
)
@click.option("--graph", metavar="DIR", help="The graph of an INDEX, if it was moved.")
@takes(QuerySource, "source", only=("side", "bipartite", "no_cache", "titles"), side=_SIDE)
@format_option
def nodes(
    path: str,
    text: str | None,
    search: str | None,
    links: bool,
    k: int,
    graph: str | None,
    source: QuerySource,
    show: Show,
) -> None:
    """Find nodes whose names or titles contain TEXT; without TEXT, list all nodes.

    The search ignores case, accents, underscores for blanks, and percent-encoding. An exact match
    comes first, then names that begin with TEXT, then the others. Ties are ordered by in-links.
    """
    from cocite.search.resolver import NodesDocument

    if text is not None and search is not None:
        raise UsageError(f"{text!r} and --search {search!r} are the same: omit one of them")
    wanted = text if search is None else search
    path = graph_of(path, source)
    found = NodesDocument.of_path(
        path, wanted or "", k=k, links=links, graph=graph, side=source.side
    )
    show(Reply(found, lambda: _text(found, links)))
    if not found.found:
        say(f"no name in {found.path} contains {wanted!r}")
    elif found.found > len(found.nodes):
        what = f" that contain {wanted!r}" if wanted else ""
        say(f"{len(found.nodes):,} of {found.found:,} nodes{what}; -k shows more")
    if found.nodes and found.nodes[0].in_links is None:
        say("the graph has been moved, so links are not counted: see --graph")


def _text(found: NodesDocument, links: bool) -> str:
    if not found.nodes:
        return ""
    if links:
        return "\n\n".join(map(_with_links, found.nodes))
    named = [each.title or "" for each in found.nodes] if found.titled else None
    if found.nodes[0].in_links is None:
        if named is None:
            return "\n".join(each.node for each in found.nodes)
        return names_text(["node"], [[each.node] for each in found.nodes], named)
    rows = [[f"{each.in_links:,}", f"{each.out_links:,}", each.node] for each in found.nodes]
    titles = ["in-links", "out-links", "node"]
    return names_text(titles, rows, named, (("out-links",), ("in-links",)))


def _with_links(node: FoundNode) -> str:
    lines = [f"{node.node}  {node.title}" if node.title else node.node]
    for title, ends in (("linked from", node.linked_from), ("links to", node.links_to)):
        others = ends or []
        lines.append(f"  {title} {len(others):,}{':' * bool(others)}")
        lines += [f"    {other}" for other in others[:_SHOWN]]
        if len(others) > _SHOWN:
            lines.append(f"    and {len(others) - _SHOWN:,} more: --format json lists all")
    return "\n".join(lines)
