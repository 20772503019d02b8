"""``cocite tune``: find out what an index of a graph should be made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocite.cli.commands.evaluate import label_options
from cocite.cli.console import Stages
from cocite.cli.help import SectionedVerb
from cocite.cli.link_files import bipartite_option, cache_option, graph_of, side_option
from cocite.cli.options import cluster_option, format_option, resource_options, via_option
from cocite.cli.output import Reply, Show, facts_text, fitting, say, table_text, unsaid
from cocite.graph.links import DIRECTIONS
from cocite.resources import format_size, format_time

if TYPE_CHECKING:
    from cocite.evaluation import Interval
    from cocite.evaluation.trials import Trial, TuningResult


_NAME = 20
"""Letters of a candidate's name that must fit; longer ones are left to the terminal to wrap."""


@click.command(cls=SectionedVerb)
@click.argument("graph", metavar="GRAPH|LINKS")
@click.option(
    "-o",
    "--output",
    metavar="FILE.toml",
    help="Write the settings that were chosen, for cocite index --settings. What is done is kept "
    "beside it, and an interrupted command goes on. Without it the settings are told only.",
)
@click.option(
    "--labels",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Choose by a table of names and categories (text or Parquet), instead of by "
    "links that are hidden.",
)
@label_options
@click.option(
    "--separator",
    metavar="TEXT",
    default=".",
    show_default=True,
    help='What separates the parts of a category, the most general first; "" for nothing.',
)
@click.option(
    "--figure",
    metavar="NAME",
    help="What decides: company@10, company@50, links@10 or links@50; with labels a figure of "
    "cocite evaluate, such as precision@20 or gamma.  [default: company@50, "
    "company@10 for fewer than 500 nodes, precision@10 with labels]",
)
@click.option(
    "--measure",
    "measures",
    multiple=True,
    metavar="NAME",
    help="Try this measure only. Repeatable.  [default: all]",
)
@click.option(
    "--direction",
    "directions",
    multiple=True,
    metavar=f"[{'|'.join(DIRECTIONS)}]",
    help="Try this direction only, for measures that take it. Repeatable.  [default: all]",
)
@click.option(
    "--share",
    type=float,
    default=0.1,
    show_default=True,
    help="The share of the links that are hidden, at most 0.5. Every page keeps one.",
)
@click.option(
    "--queries",
    type=click.IntRange(0),
    default=1000,
    show_default=True,
    help="How many pages choose and judge, half of them each; 0 for all.",
)
@click.option(
    "--samples",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Samples of the last round, and of the settings.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Where the random numbers start. Equal seeds give equal choices, unless time was up.",
)
@click.option(
    "--time",
    metavar="TIME",
    default="10min",
    show_default=True,
    help="How long it may take, such as 90s or 2h. What it has not come to then is left out, and "
    "told.",
)
@click.option(
    "--unweighted",
    is_flag=True,
    help="Ignore the weights of links.  [default: use them, if there are any, and leave out "
    "measures that cannot]",
)
@resource_options
@cluster_option(
    "Draw the samples on a cluster. Its nodes see GRAPH and FILE.toml by the same paths."
)
@via_option
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the file when the new one is complete. A symbolic link is refused.",
)
@click.option(
    "--best",
    is_flag=True,
    help="Choose the best by the pages that choose, even if the default is not told apart from it.",
)
@click.option(
    "--no-resume",
    "restart",
    is_flag=True,
    help="Begin again: throw away what is unfinished, which had other options.",
)
@bipartite_option
@side_option(
    "Of a bipartite graph the side that is chosen for, such as user.  [default: the side of the "
    "targets, item]"
)
@cache_option
@format_option
def tune(
    graph: str,
    output: str | None,
    show: Show,
    bipartite: bool,
    no_cache: bool,
    **options: Any,
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
    from cocite.search.open import BUILD_LOG

    for name in ("label_columns", "delimiter", "header", "skip_bad_rows"):
        if options[name] is None:
            del options[name]
    means = {name: options[name] for name in ("memory", "threads")}
    stored = graph_of(graph, no_cache=no_cache, bipartite=bipartite, **means)
    with Stages({"round": "candidates"}) as stages, unsaid(BUILD_LOG):
        found = run(
            stored,
            output,
            progress=stages,
            **options,
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
    kept = fitting(titles, [[*row[:-1], row[-1][:_NAME]] for row in rows])
    text = table_text([titles[i] for i in kept], [[row[i] for i in kept] for row in rows])
    hidden = f"; {found.hidden:,} of {found.links:,} links were hidden" if found.hidden else ""
    before = len(found.tried) - len(last)
    earlier = f"{before:,} candidate{'s' * (before > 1)}"
    facts = {
        "chosen": f"{found.best.name}: {found.reason}",
        "by": f"{found.chosen_by:,} pages, judged by {found.judged_by:,} others{hidden}",
        "left out before": f"{earlier}; --format csv has them" if before else "none",
    }
    return f"{text}\n\n{facts_text(facts)}"


def _row(each: Trial) -> list[str]:
    return [
        _short(each.figure),
        format_time(each.seconds),
        format_size(each.bytes),
        "-" if each.judged is None else _short(each.judged),
        "-" if each.behind is None else _short(each.behind),
        f"{1000 * each.question:.2f} ms",
        each.name,
    ]


def _short(found: Interval) -> str:
    """A value, and half its interval."""
    return f"{found.value:.3f} ±{(found.high - found.low) / 2:.3f}"
