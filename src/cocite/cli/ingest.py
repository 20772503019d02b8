"""``cocite ingest``: files of links to a stored graph."""

from __future__ import annotations

import click

from cocite.cli.options import format_option, memory_option, overwrite_option, threads_option
from cocite.cli.outputs import Show
from cocite.cli.progress import Stages
from cocite.cli.text import say

__all__ = ["ingest"]


@click.command()
@click.argument("inputs", nargs=-1, required=True, metavar="LINKS...")
@click.option("-o", "--output", required=True, metavar="DIR", help="The graph to make.")
@click.option(
    "--nodes",
    multiple=True,
    metavar="FILE",
    help="A file whose first column names nodes, so that nodes without links exist; repeatable.",
)
@click.option(
    "--delimiter",
    type=click.Choice(["auto", "tab", "comma", "semicolon", "pipe", "space"]),
    default="auto",
    show_default=True,
    help="What stands between columns.",
)
@click.option(
    "--header",
    type=click.Choice(["auto", "yes", "no"]),
    default="auto",
    show_default=True,
    help="Whether the first row of LINKS holds titles.",
)
@click.option(
    "--columns",
    metavar="SOURCE,TARGET",
    help="The two columns of a link, as titles or numbers from 1.  [default: 1,2]",
)
@click.option(
    "--weight-column",
    metavar="TITLE|NUMBER",
    help="The column of the links' weights; those of duplicates are added.  [default: none]",
)
@click.option(
    "--comment",
    default="#",
    show_default=True,
    metavar="CHAR",
    help="What begins a comment line; empty for none.",
)
@click.option("--undirected", is_flag=True, help="Store every link both ways.")
@click.option("--keep-self-loops", is_flag=True, help="Keep links from a node to itself.")
@click.option(
    "--skip-bad-rows",
    is_flag=True,
    help="Leave malformed rows out and count them, instead of stopping at the first.",
)
@memory_option
@threads_option
@overwrite_option
@format_option
def ingest(
    inputs: tuple[str, ...],
    output: str,
    nodes: tuple[str, ...],
    columns: str | None,
    show: Show,
    **options: object,
) -> None:
    """Read LINKS and store them as a graph.

    LINKS are files or patterns in quotes, or - for standard input: one link a row, source then
    target, as text (tabs, commas, blanks; plain, .gz or .zst) or Parquet. Nodes are integers or
    any text, such as titles or URLs. Duplicate links and links from a node to itself are dropped
    and counted.
    """
    from cocite.cli.info import graph_reply
    from cocite.graph.ingest import ingest as run

    with Stages({"reading": "bytes", "writing": "links"}) as stages:
        graph = run(
            inputs,
            output,
            nodes=nodes or None,
            columns=columns or (),
            progress=stages,
            **options,  # type: ignore[arg-type]
        )
    for source in graph.store.facts["sources"]:
        say("read " + source["read_as"])
        if source["bad_rows"]:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in source["bad_rows"].items())
            say(f"  left out bad rows: {kinds}")
            for example in source["examples"]:
                say(f"    {example}")
    if graph.edges == 0:
        say("no link was found: the graph is empty, or has isolated nodes only")
    show(graph_reply(graph))
