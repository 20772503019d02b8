"""``cocite related-all``: every node's most related nodes, as a file, a folder or a stream."""

from __future__ import annotations

import sys
from contextlib import ExitStack, redirect_stdout
from typing import TYPE_CHECKING, Any

import click

from cocite.cli import flags
from cocite.cli.console import Stages, say
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import IndexSource, asks, opened, show_refining
from cocite.cli.output import Reply, Show, counted, facts_text, or_of
from cocite.deadline import clock
from cocite.errors import UsageError
from cocite.io.writers import GRAPHS, TABLES, kinds_of
from cocite.options.common import OutputOptions
from cocite.options.query import BatchOptions
from cocite.resources import format_size, format_time, give_back_at_once

if TYPE_CHECKING:
    from cocite.search.batch.estimate import BatchPlan
    from cocite.search.batch.run import Machines


_KINDS = [*kinds_of((*TABLES, *GRAPHS)), "folder", "site"]
_ROWS = [ending for ending in TABLES if ending != ".jsonl"]


@click.command(cls=SectionedCommand)
@click.argument("index", metavar="INDEX|GRAPH|LINKS")
@flags.outputs(
    "What to write: a table of node, rank, related, score, stderr and, with intervals, low and "
    f"high ({or_of(_ROWS)}); a line of JSON per node (.jsonl); the k-nearest-neighbor graph "
    f"({or_of(list(GRAPHS))}); or a folder with a JSON file per node (a name that ends in /). - is "
    "standard output.",
    _KINDS,
    output={"metavar": "FILE|DIR/|-"},
    output_format={"unset": "by the file name; jsonl on standard output"},
)
@flags.takes(
    BatchOptions,
    "query",
    without=("offset", "total", "aggregate", "confidence"),
    k={"text": "How many hits to write for each node."},
)
@asks
@flags.resources
@flags.cluster("Query on a cluster. Its nodes must have INDEX at the same path.")
@flags.no_verify
@flags.format
def related_all(
    index: str,
    output: OutputOptions,
    query: BatchOptions,
    source: IndexSource,
    limits: flags.ResourceLimits,
    cluster: str | None,
    show: Show,
) -> None:
    """Write the nodes most related to every node to a file or a database.

    Each list equals that of "cocite related". Progress is saved every few seconds; to resume an
    interrupted run, repeat the command. The output does not depend on the number of threads. On
    standard output, lists appear as soon as they are computed, and messages go to standard error.
    """
    from cocite.search.batch.run import Batch, HitStream
    from cocite.search.results import BatchDocument

    streams = output.output == "-"
    if streams and cluster:
        raise UsageError(
            "--cluster cannot write to standard output: omit --cluster, or write to a file with "
            "--output"
        )
    if streams and (output.overwrite or not query.resume or output.append or output.to):
        raise UsageError(
            "--overwrite, --no-resume, --append and --to do not apply to standard output: omit them"
        )
    give_back_at_once()
    chosen: dict[str, Any] = (
        query.keywords() | {"safe": flags.safe_csv()} | _intervals(query.intervals)
    )
    chosen |= {"kind": output.output_format, "side": source.where.side}
    opened_index, settings = opened(index, source, **limits)
    begin = clock()
    units = {"refining": "nodes", "relating": "nodes", "writing": "rows"}
    if streams:
        stream = HitStream(opened_index, query.k, **chosen, **settings)
        say(f"standard output: {_query_of(query.k, stream.nodes)}")
        with Stages(units) as stages:
            show_refining(opened_index, stages)
            report = stream.run(sys.stdout.buffer, stages)
        label, asked = "standard output", stream.nodes
    else:
        chosen |= {"to": output.to, "append": output.append, "overwrite": output.overwrite}
        chosen |= {"restart": not query.resume}
        with ExitStack() as stack:
            machines = None if cluster is None else _machines(cluster, limits, stack)
            chosen["machines"] = machines
            work = stack.enter_context(
                Batch(opened_index, output.output, query.k, **chosen, **settings)
            )
            label = work.label
            kept = f"; resuming after {work.done:,} finished by an earlier run"
            say(f"{label}: {_query_of(query.k, work.nodes)}{kept * (work.done > 0)}")
            with Stages(units) as stages:
                show_refining(opened_index, stages)
                # Cluster nodes may differ from this machine, so a pilot run would not predict the
                # cost.
                if machines is None and (estimated := work.estimate(stages)) is not None:
                    say(summary_text(estimated))
                report = work.run(stages)
        asked = work.nodes
    named = "-" if streams else label
    found = BatchDocument.of(opened_index, named, report, clock() - begin)
    without = found.nodes_without_results
    size = "" if found.bytes is None else f", {format_size(found.bytes)}"
    shown = {
        "output": f"{label}{size}",
        "nodes": f"{found.nodes:,} of {asked:,} in {found.seconds:.1f} s",
        "rows": f"{found.rows_written:,}",
        "without results": f"{counted(without, 'node')}; cocite related INDEX NODE says why"
        * (without > 0),
    }
    with redirect_stdout(sys.stderr if streams else sys.stdout):
        show(Reply(found, lambda: facts_text(shown)))


def summary_text(plan: BatchPlan) -> str:
    """Describe the cost of a batch in one line."""
    s = "s" * (plan.threads > 1)
    return (
        f"about {format_time(plan.seconds)} on {plan.threads} thread{s}, "
        f"{format_size(plan.memory)} of memory, {format_size(plan.bytes)} of output, "
        f"{format_size(plan.disk)} of disk for temporary files"
    )


def _machines(cluster: str, limits: flags.ResourceLimits, stack: ExitStack) -> Machines:
    from cocite.cluster.ray import Cluster
    from cocite.search.batch.run import Machines

    return Machines(stack.enter_context(Cluster.connect(cluster)), **limits)


def _intervals(given: str | None) -> dict[str, Any]:
    if given is None:
        return {}
    if given.lower() == "no":
        return {"intervals": False}
    try:
        return {"intervals": True, "confidence": float(given)}
    except ValueError:
        raise UsageError(
            f"--intervals is {given!r}; it must be 'no', or a number between 0 and 1, such as 0.95"
        ) from None


def _query_of(k: int, nodes: int) -> str:
    return f"up to {counted(k, 'hit')} for each of {counted(nodes, 'node')}"
