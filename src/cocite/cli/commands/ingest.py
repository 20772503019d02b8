"""``cocite ingest``: store links as a graph. ``cocite generate``: make synthetic graphs."""

from __future__ import annotations

from dataclasses import replace
from textwrap import fill

import click

from cocite.cli import flags
from cocite.cli.console import Stages, say
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import report_inputs
from cocite.cli.output import Show
from cocite.io.readers import readers
from cocite.io.readers.formats import reader_at
from cocite.options.ingest import IngestOptions
from cocite.storage import kind_of

_KINDS = {name: reader_at(place).described for name, place in readers().items()}
_WIDTH = 2 + max(map(len, _KINDS))
_LIST = "\n".join(
    fill(text, 78, initial_indent=f"  {name:{_WIDTH}}", subsequent_indent=" " * (_WIDTH + 2))
    for name, text in _KINDS.items()
)
_HELP = f"""Read LINKS and store them as a graph.

LINKS are files, patterns in quotes, - for standard input, or a folder of HTML pages, Markdown
notes, source code, or parts of a table. Files may be compressed (.gz, .bz2, .xz or .zst). The
format is detected from content and file extension, or set by --input-format:

\b
{_LIST}

In text files, each row is a link: first the source, then the target. Nodes are named by integers or
by any text, such as titles or URLs. Duplicate links and links from a node to itself are dropped and
counted.
"""


@click.command(cls=SectionedCommand, help=_HELP)
@click.argument("inputs", nargs=-1, metavar="[LINKS...]")
@flags.store("graph")
@flags.takes(IngestOptions, "options")
@flags.memory
@flags.threads
@flags.format
def ingest(
    inputs: tuple[str, ...],
    output: str,
    options: IngestOptions,
    memory: int | None,
    threads: int | None,
    show: Show,
) -> None:
    """Read links and store them as a graph; the help is ``_HELP``."""
    from cocite.cli.commands.info import graph_reply
    from cocite.io.ingest import ingest as run

    if not inputs and not (options.sql or options.database or options.table):
        raise click.MissingParameter(
            "Pass edge lists, - for standard input, or a database (--sql, --database).",
            param_hint="'LINKS...'",
            param_type="argument",
        )
    left_out = flags.excluded_in(options.exclude_nodes, (*inputs, *(options.nodes or ())))
    options = replace(options, exclude_nodes=left_out)
    units = {"reading": "bytes", "parsing": "pages", "fetching": "pages", "writing": "links"}
    units["cutting"] = "links"
    with Stages(units) as stages:
        graph = run(
            inputs or None, output, memory=memory, threads=threads, progress=stages, options=options
        )
    stored = bool(inputs) and kind_of(inputs[0]) == "graph"
    if stored and options.partitions is not None:
        show(graph_reply(graph))
        return
    report_inputs(graph, links=not stored)
    if "normalized_urls" in graph.store.facts:
        say(f"{graph.store.facts['normalized_urls']:,} URLs used as names were normalized")
    if graph.edges == 0:
        say("no links were found: the graph is empty, or has only isolated nodes")
    show(graph_reply(graph))


@click.group()
def generate() -> None:
    """Make a synthetic graph of any size."""


@generate.command()
@click.option(
    "--pages", "nodes", type=int, required=True, metavar="N", help="How many pages (nodes)."
)
@click.option("--links", type=int, required=True, metavar="M", help="How many links, exactly.")
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="S",
    help="The random seed; a different seed gives a different graph.",
)
@click.option("-o", "--output", required=True, metavar="DIR", help="The graph to create.")
@click.option(
    "--labels",
    metavar="FILE",
    help="Also write this file, with one line per page: its name, a tab, and its topic.",
)
@click.option(
    "--names",
    type=click.Choice(["text", "integers"], case_sensitive=False),
    default="text",
    show_default=True,
    help="Name pages by URL (text) or by number (integers). Numbers take no space on disk.",
)
@flags.overwrite("graph")
@flags.format
def web(
    nodes: int,
    links: int,
    seed: int,
    output: str,
    labels: str | None,
    names: str,
    overwrite: bool,
    show: Show,
) -> None:
    """Make a web-like graph: hosts, sections, templated pages, topics.

    Some pages have very many in-links, most links stay within a host, and hosts on the same topic
    link to each other. The same --pages, --links and --seed always give the same graph. Memory does
    not grow with the number of links.
    """
    from cocite.cli.commands.info import graph_reply
    from cocite.graph.generate import generate_web

    with Stages({"linking": "links", "naming": "pages"}) as stages:
        graph = generate_web(
            output,
            nodes=nodes,
            links=links,
            seed=seed,
            names=names,
            labels=labels,
            overwrite=overwrite,
            progress=stages,
        )
    show(graph_reply(graph))
