"""``cocite index``: build the index that answers queries."""

from __future__ import annotations

import click

from cocite.cli.options import format_option, memory_option, overwrite_option, threads_option
from cocite.cli.output import print_facts, say
from cocite.cli.progress import Stages
from cocite.memory import format_size

__all__ = ["index"]


@click.command()
@click.argument("graph", metavar="GRAPH")
@click.option("-o", "--output", required=True, metavar="DIR", help="The index to make.")
@click.option(
    "--measure",
    metavar="[psimrank|simrank]",
    default="psimrank",
    show_default=True,
    help="psimrank: similar pages are linked to by the same or similar pages. "
    "simrank: the classic, which lets walks meet by chance only.",
)
@click.option(
    "--samples",
    type=int,
    default=100,
    show_default=True,
    help="Independent samples, 1 to 65535; four times as many halve the error.",
)
@click.option(
    "--length", type=int, default=10, show_default=True, help="Steps of a walk, at most 15."
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Equal seeds give equal samples, whatever the threads, memory, blocks and shards.",
)
@click.option(
    "--shard",
    type=int,
    metavar="SAMPLES",
    help="Samples between two points at which a build can resume.  [default: 16, fewer on large "
    "graphs]",
)
@click.option(
    "--blocks",
    type=click.IntRange(1),
    metavar="COUNT",
    help="Cut the graph into blocks, one in memory at a time.  [default: as --memory needs]",
)
@click.option(
    "--external",
    is_flag=True,
    help="Keep the walks' tokens on disk, too: constant memory.  [default: if --memory is below "
    "26.5 bytes a node]",
)
@memory_option
@threads_option
@overwrite_option
@click.option("--restart", is_flag=True, help="Throw away an unfinished build with other settings.")
@format_option
def index(
    graph: str,
    output: str,
    measure: str,
    samples: int,
    length: int,
    seed: int,
    form: str,
    **options: object,
) -> None:
    """Build an index of the stored GRAPH.

    Before it starts it says what it will take. A build that was interrupted goes on when the
    same command is given again.
    """
    from cocite.graph import Graph
    from cocite.index.build import BuildOptions, IndexBuild, format_time

    checked = BuildOptions.checked(measure, samples, length, seed)
    with IndexBuild(Graph.open(graph), output, checked, **options) as work:  # type: ignore[arg-type]
        say(f"{output}: {work.estimate()}")
        with Stages({"sampling": "samples"}) as stages:
            report = work.run(lambda done, total: stages("sampling", done, total))
    nodes = Graph.open(graph).nodes
    each = report.live_steps / (nodes * report.samples) if report.samples else 0.0
    density = report.bytes / (nodes * samples)
    print_facts(
        {
            "index": output,
            "measure": measure,
            "samples": samples,
            "samples_made": report.samples,
            "length": length,
            "seed": seed,
            "seconds": report.seconds,
            "live_steps_per_node": each,
            "bytes": report.bytes,
            "bytes_per_node_and_sample": density,
        },
        form,
        {
            "index": output,
            "measure": f"{measure}, length {length}, seed {seed}",
            "samples": f"{samples:,}, of which {report.samples:,} made now in "
            f"{format_time(report.seconds)}",
            "live steps": f"{each:.2f} a node and sample",
            "on disk": f"{format_size(report.bytes)}, {density:.2f} bytes a node and sample",
        },
    )
