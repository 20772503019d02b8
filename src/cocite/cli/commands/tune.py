"""``cocite tune``: find out what an index of a graph should be made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cocite.cli.console import Stages, say
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import graph_of
from cocite.cli.options import cluster_option, format_option, resource_options, takes
from cocite.cli.output import Reply, Show, counted, facts_text, held, names_text
from cocite.options.build import IndexOptions
from cocite.options.evaluate import TuneOptions
from cocite.options.source import SourceOptions
from cocite.resources import format_size, format_time

if TYPE_CHECKING:
    from cocite.evaluation.trials import Trial, TuningResult


_NAME = 20
"""Letters of a candidate's name that must fit; longer ones are left to the terminal to wrap."""


@click.command(cls=SectionedCommand)
@click.argument("graph", metavar="GRAPH|LINKS")
@click.option(
    "-o",
    "--output",
    metavar="FILE.toml",
    help="Write the settings that were chosen, for cocite index --settings. What is done is kept "
    "beside it, and an interrupted command goes on. Without it the settings are told only.",
)
@takes(TuneOptions, "options")
@resource_options
@cluster_option(
    "Draw the samples on a cluster. Its nodes see GRAPH and FILE.toml by the same paths."
)
@takes(IndexOptions, "sent", only=("staging_url",))
@takes(SourceOptions, "source", only=("bipartite", "no_cache"))
@format_option
def tune(
    graph: str,
    output: str | None,
    options: TuneOptions,
    memory: int | None,
    threads: int | None,
    source: SourceOptions,
    show: Show,
    **where: Any,
) -> None:
    """Find out which measure, direction and settings suit the stored GRAPH, or a file of LINKS.

    \b
    cocite tune web.graph -o index-settings.toml
    cocite index web.graph --settings index-settings.toml -o web.index

    A share of the links is hidden, measures are tried in every direction, with a few values of
    their settings, and that is best whose lists find the company of what is hidden: pages that
    share the links that a page has lost. Half of the pages choose, the others judge. The default is
    left only for what is ahead of it by both, by more than chance. With --labels half of the
    labeled pages choose.
    """  # noqa: D301 - click wants the backspace itself
    from cocite.evaluation.tune import tune as run
    from cocite.search.builds import BUILD_LOG

    means: dict[str, Any] = {"memory": memory, "threads": threads}
    stored = graph_of(graph, source, **means)
    with Stages({"round": "candidates"}) as stages, held(BUILD_LOG):
        found = run(
            stored,
            output,
            cluster=where["cluster"],
            staging_url=where["sent"].staging_url,
            progress=stages,
            options=options,
            **means,
        )
    show(Reply(found, lambda: _text(found)))
    for note in found.notes:
        say(note)
    if output is not None:
        say(f"{output}: the settings; see cocite index {graph} --settings {output}")


def _text(found: TuningResult) -> str:
    """The candidates of the last round, and what is chosen."""
    titles = [found.by, "build", "size", "judged", "behind", "question", "candidate"]
    last = [each for each in found.tried if each.behind is not None]
    rows = [_row(each) for each in last]
    optional = [(title,) for title in titles[-2:0:-1]]
    hidden = f"; {found.hidden:,} of {found.links:,} links were hidden" if found.hidden else ""
    before = len(found.tried) - len(last)
    earlier = f"{counted(before, 'candidate')}; --format csv has them"
    facts = {
        "chosen": f"{found.best.name}: {found.reason}",
        "by": f"{found.chosen_by:,} pages, judged by {found.judged_by:,} others{hidden}",
        "left out before": earlier if before else "none",
    }
    return f"{names_text(titles, rows, None, optional, _NAME)}\n\n{facts_text(facts)}"


def _row(each: Trial) -> list[str]:
    figures = [
        "-" if found is None else f"{found.value:.3f} ±{(found.high - found.low) / 2:.3f}"
        for found in (each.figure, each.judged, each.behind)
    ]
    return [
        figures[0],
        format_time(each.seconds),
        format_size(each.bytes),
        *figures[1:],
        f"{1000 * each.question:.2f} ms",
        each.name,
    ]
