"""``cocite nodes``: find nodes by a part of their names, and see what they are linked with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cocite.cli.options import format_option
from cocite.cli.outputs import Reply, Show
from cocite.cli.text import say, table_text

if TYPE_CHECKING:
    from cocite.query.nodes import FoundNode, NodesDocument

__all__ = ["nodes"]

_SHOWN = 10
"""Links of a node that the table shows by name, each way."""


@click.command()
@click.argument("path", metavar="GRAPH|INDEX")
@click.option(
    "--search",
    metavar="TEXT",
    default="",
    help="Only nodes whose names contain this, in any case.  [default: all]",
)
@click.option(
    "--links", is_flag=True, help="Show which nodes link to them, and which they link to."
)
@click.option(
    "-k", type=click.IntRange(1), default=20, show_default=True, help="How many nodes to show."
)
@click.option("--graph", metavar="DIR", help="Where the graph of an INDEX is now, if it was moved.")
@format_option
def nodes(path: str, search: str, links: bool, k: int, graph: str | None, show: Show) -> None:
    """Find nodes by a part of their names.

    First comes the node that is called so, then those whose names begin so, then the others; of
    these, and without --search, those first that most nodes link to.
    """
    from cocite.query.nodes import NodesDocument

    found = NodesDocument.of_path(path, search, k=k, links=links, graph=graph)
    show(Reply(found, lambda: _text(found, links)))
    if not found.found:
        say(f"no name of {found.path} contains {search!r}")
    elif found.found > len(found.nodes):
        what = f" that contain {search!r}" if search else ""
        say(f"{len(found.nodes):,} of {found.found:,} nodes{what}; -k shows more")
    if found.nodes and found.nodes[0].in_links is None:
        say("the graph is not where it was, so links are not counted: see --graph")


def _text(found: NodesDocument, links: bool) -> str:
    if not found.nodes:
        return ""
    if links:
        return "\n\n".join(map(_with_links, found.nodes))
    if found.nodes[0].in_links is None:
        return "\n".join(each.node for each in found.nodes)
    rows = [[f"{each.in_links:,}", f"{each.out_links:,}", each.node] for each in found.nodes]
    return table_text(["in-links", "out-links", "node"], rows)


def _with_links(node: FoundNode) -> str:
    lines = [node.node]
    for title, ends in (("linked from", node.linked_from), ("links to", node.links_to)):
        others = ends or []
        lines.append(f"  {title} {len(others):,}{':' * bool(others)}")
        lines += [f"    {other}" for other in others[:_SHOWN]]
        if len(others) > _SHOWN:
            lines.append(f"    and {len(others) - _SHOWN:,} more: --format json has all")
    return "\n".join(lines)
