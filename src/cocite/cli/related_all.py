"""``cocite related-all``: the most related nodes of every node, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cocite.cli.asking import refine_options
from cocite.cli.links import cache_option, made_of
from cocite.cli.options import SectionedVerb, format_option, means_options, names_in
from cocite.cli.outputs import Reply, Show
from cocite.cli.progress import Stages
from cocite.cli.settings import ask_options, given
from cocite.cli.text import facts_text, or_of, say
from cocite.compiled.clock import clock
from cocite.errors import UsageError
from cocite.graph.writers import TABLES
from cocite.memory import format_size

__all__ = ["related_all"]

_OPTIONS = (
    "min_score",
    "prefix",
    "exclude_prefix",
    "ids",
    "refine",
    "target_error",
    "overwrite",
    "restart",
)


@click.command(cls=SectionedVerb)
@click.argument("index", metavar="INDEX|LINKS")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help=f"The file to make: {or_of(TABLES)} (node, rank, related, score, stderr).",
)
@click.option(
    "-k",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="How many hits to write for each node.",
)
@click.option(
    "--nodes",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Ask only for the nodes that are named in this file, one a line.  [default: all]",
)
@click.option(
    "--min-score",
    type=float,
    default=0.0,
    show_default=True,
    help="Leave out hits with a lower score.",
)
@click.option("--prefix", metavar="TEXT", help="Write only hits whose name begins like this.")
@click.option("--exclude-prefix", metavar="TEXT", help="Write no hits whose name begins like this.")
@click.option(
    "--ids", is_flag=True, help="Write the numbers of nodes, from 0 on, instead of their names."
)
@refine_options
@click.option("--graph", metavar="DIR", help="Where the graph of INDEX is now, if it was moved.")
@cache_option
@ask_options
@means_options
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the file when the new one is complete. A symbolic link is refused.",
)
@click.option(
    "--restart",
    is_flag=True,
    help="Throw away an unfinished batch that had other options, and begin again.",
)
@format_option
def related_all(
    index: str,
    output: str,
    k: int,
    nodes: Path | None,
    graph: str | None,
    threads: int | None,
    memory: int | None,
    no_cache: bool,
    show: Show,
    **options: Any,
) -> None:
    """Write the nodes most related to every node to a file, best first.

    A row says what "cocite related" says of that node. If it is interrupted, give the same command
    again, and it goes on. The file is the same whatever the threads.
    """
    from cocite.query import open_index
    from cocite.query.batch.run import Batch
    from cocite.query.documents import BatchDocument
    from cocite.query.kept import is_links

    chosen: dict[str, Any] = {name: options[name] for name in _OPTIONS}
    if nodes is not None:
        chosen["nodes"] = names_in(nodes)
    if is_links(index):
        means = {"no_cache": no_cache, "threads": threads, "memory": memory}
        index = made_of(index, means, index=True)
    elif no_cache:
        raise UsageError(f"{index} is no file of links: leave --no-cache out")
    begin = clock()
    opened_index = open_index(index, graph=graph, threads=threads, memory=memory)
    with Batch(opened_index, output, k, **chosen, **given(options)) as work:
        kept = f"; goes on after {work.done:,} that an earlier run finished" if work.done else ""
        say(f"{output}: up to {k} hits for each of {work.nodes:,} nodes{kept}")
        units = {"refining": "nodes", "relating": "nodes", "writing": "rows"}
        with Stages(units) as stages:
            if work.refined and opened_index.refiner:
                opened_index.refiner.report = lambda sweep, done, total: stages(
                    f"refining {sweep + 1}", done, total
                )
            report = work.run(stages)
    found = BatchDocument.of(opened_index, output, report, clock() - begin)
    shown = {
        "output": f"{output}, {format_size(found.bytes)}",
        "nodes": f"{found.nodes:,} of {work.nodes:,} in {found.seconds:.1f} s",
        "rows": f"{found.rows_written:,}",
    }
    if found.without_hits:
        shown["without hits"] = (
            f"{found.without_hits:,} nodes; cocite related says of each of them why"
        )
    show(Reply(found, lambda: facts_text(shown)))
