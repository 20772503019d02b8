"""``cocite ingest``: files of links to a stored graph.

``cocite generate``: graphs that are made, not read.
"""

from __future__ import annotations

from functools import partial
from textwrap import fill

import click
from click.core import ParameterSource

from cocite.cli.console import Stages
from cocite.cli.help import SectionedVerb
from cocite.cli.link_files import (
    bipartite_option,
    reading_options,
    said_of,
    said_of_sides,
    said_of_titles,
)
from cocite.cli.options import (
    exclude_option,
    excluded_in,
    format_option,
    memory_option,
    overwrite_option,
    threads_option,
)
from cocite.cli.output import Show, held, say
from cocite.io.readers import readers
from cocite.io.readers.formats import reader_at
from cocite.storage import kind_of

_KINDS = {name: reader_at(place).described for name, place in readers().items()}
_WIDTH = 2 + max(map(len, _KINDS))
_LIST = "\n".join(
    fill(text, 78, initial_indent=f"  {name:{_WIDTH}}", subsequent_indent=" " * (_WIDTH + 2))
    for name, text in _KINDS.items()
)
_HELP = f"""Read LINKS and store them as a graph.

LINKS are files, patterns in quotes, or - for standard input; plain, or packed as .gz, .bz2, .xz or
.zst; or a folder of HTML pages. What they are is found out from what they hold and what they are
called, or told by --from:

\b
{_LIST}

In text each row is a link: first the source, then the target. Nodes are named by integers or by any
text, such as titles or URLs. Links that are there twice and links from a node to itself are dropped
and counted.
"""


@click.command(cls=SectionedVerb, help=_HELP)
@click.argument("inputs", nargs=-1, metavar="[LINKS...]")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    help="The graph to make: a directory, or a "
    "URL (s3://..., gs://..., file://...), where it comes when it is whole.",
)
@click.option(
    "--sql",
    metavar="QUERY",
    help="What a query gives, in the place of LINKS: of --database, or of DuckDB, which reads "
    "files by itself: \"select src, dst from 'clicks.parquet'\".",
)
@click.option(
    "--database",
    metavar="FILE|ADDRESS",
    help="A file of SQLite or DuckDB, or postgres://USER@HOST/DATABASE, that is read in the place "
    "of LINKS: by --sql, or its --table.",
)
@click.option(
    "--table",
    metavar="NAME",
    help="The table of --database that holds the links.  [default: its only one]",
)
@click.option(
    "--nodes",
    multiple=True,
    metavar="FILE",
    help="A file with names of nodes in its first column, to have nodes without links, too. "
    "Repeatable.",
)
@click.option(
    "--titles",
    multiple=True,
    metavar="FILE|DATABASE#TABLE",
    help="A table of names and titles, which are shown beside names: text with tabs or commas, "
    "Parquet, or a table of a database, such as 'sqlite:///site.db#pages'. Repeatable.",
)
@click.option(
    "--title-columns",
    metavar="NAME,TITLE",
    help="The columns of these, by their names or by numbers from 1.  [default: those whose names "
    "say so; else 1,2]",
)
@bipartite_option
@reading_options
@exclude_option(
    "Leave out the nodes that are named in this file, one a line, with all links to and from them: "
    "hubs that are linked with all, for one. - reads standard input. LINKS may be a stored graph "
    "then, of which one without them is made.",
    dash=True,
)
@click.option(
    "--blocks",
    type=click.IntRange(1, 1024),
    metavar="COUNT",
    help="Store the graph in so many blocks, a directory each, for runs on a cluster of which no "
    "machine holds all: cocite index and cocite rank with --cluster. LINKS may be a stored graph, "
    "which is cut.  [default: in one piece]",
)
@memory_option
@threads_option
@overwrite_option("graph")
@format_option
def ingest(
    inputs: tuple[str, ...],
    output: str,
    nodes: tuple[str, ...],
    titles: tuple[str, ...],
    title_columns: str | None,
    columns: str | None,
    skip_bad_rows: bool,
    skip_all_bad_rows: bool,
    exclude_nodes: str | None,
    blocks: int | None,
    show: Show,
    **options: object,
) -> None:
    """Read links and store them as a graph; ``_HELP`` is what is shown."""
    from cocite.cli.commands.info import graph_reply
    from cocite.graph.graph import HUBS_LOG
    from cocite.io.ingest import ingest as run
    from cocite.io.partitions import ingest_blocks

    if not inputs and not (options["sql"] or options["database"] or options["table"]):
        raise click.MissingParameter(
            "Name files of links, - for standard input, or a database: --sql, --database.",
            param_hint="'LINKS...'",
            param_type="argument",
        )
    exclude = excluded_in(exclude_nodes, (*inputs, *nodes))
    units = {"reading": "bytes", "parsing": "pages", "fetching": "pages", "writing": "links"}
    units["cutting"] = "links"
    if blocks is not None and inputs and kind_of(inputs[0]) == "graph" and exclude is None:
        _refuse_more()
        with Stages(units) as stages:
            overwrite = bool(options["overwrite"])
            cut = ingest_blocks(inputs, output, blocks, overwrite=overwrite, progress=stages)
        show(graph_reply(cut))
        return
    with Stages(units) as stages, held(HUBS_LOG) as notes:
        graph = (run if blocks is None else partial(ingest_blocks, blocks=blocks))(
            inputs or None,
            output,
            nodes=nodes or None,
            titles=titles or None,
            title_columns=title_columns or (),
            columns=columns or (),
            skip_bad_rows="all" if skip_all_bad_rows else skip_bad_rows,
            exclude=exclude,
            progress=stages,
            **options,  # type: ignore[arg-type]
        )
    stored = bool(inputs) and kind_of(inputs[0]) == "graph"
    for source in () if stored else graph.store.facts["sources"]:
        said_of(source)
    if not stored:
        said_of_sides(graph)
    said_of_titles(graph.store.facts.get("titles"))
    if "normalized_urls" in graph.store.facts:
        say(f"{graph.store.facts['normalized_urls']:,} names were URLs, and written in another way")
    for note in notes:
        say(note)
    if graph.edges == 0:
        say("no link was found: the graph is empty, or has isolated nodes only")
    show(graph_reply(graph))


def _refuse_more() -> None:
    """A stored graph is cut as it is: see that nothing else is chosen."""
    context = click.get_current_context()
    heeded = {"inputs", "output", "blocks", "overwrite", "show", "memory", "threads"}
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name not in heeded and not name.startswith("format_"):
            raise click.UsageError(
                f"{parameter.opts[-1]} is of files of links: a stored graph is cut as it is"
            )


# -- generate ----------------------------------------------------------------------------


@click.group()
def generate() -> None:
    """Make a graph of any size, for trying things out at that size."""


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
    help="Where the random numbers start; another seed gives another graph.",
)
@click.option("-o", "--output", required=True, metavar="DIR", help="The graph to make.")
@click.option(
    "--labels",
    metavar="FILE",
    help="Write this file, too: the name of each page, a tab, and its topic.",
)
@click.option(
    "--names",
    type=click.Choice(["text", "integers"], case_sensitive=False),
    default="text",
    show_default=True,
    help="Name pages by URLs, or by numbers, which take no space on disk.",
)
@overwrite_option("graph")
@format_option
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

    Some pages have very many in-links, most links stay inside a host, and hosts of one topic link
    to each other. The same --pages, --links and --seed always give the same graph. Memory does not
    grow with the links.
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
