"""``cocite evaluate``: measure the quality of answers. ``cocite tune``: find the best settings."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocite.cli import GIVEN, flags
from cocite.cli.console import Stages, say
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import graph_of, index_of
from cocite.cli.output import Reply, Show, counted, facts_text, held, names_text, or_of
from cocite.io.writers import TABLES, kinds_of
from cocite.options.build import IndexOptions
from cocite.options.common import OutputOptions, SourceOptions
from cocite.options.evaluate import EvaluateOptions, TuneOptions
from cocite.resources import format_size, format_time

if TYPE_CHECKING:
    from cocite.evaluation.report import StudyDocument
    from cocite.evaluation.trials import Trial, TuningResult


_UNITS = {"loading": "bytes", "judging": "queries", "reading": ""}


def _settings(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, Any]:
    """Parse ``name=value`` pairs; values are numbers, true, false, or words."""
    import json

    found: dict[str, Any] = {}
    for text in values:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"{text!r} must have the form NAME=VALUE, such as decay=0.1")
        try:
            found[name.replace("-", "_")] = json.loads(value)
        except ValueError:
            found[name.replace("-", "_")] = value
    return found


@click.command(cls=SectionedCommand)
@click.argument("paths", metavar="[INDEX|GRAPH|LINKS]...", nargs=-1)
@flags.takes(EvaluateOptions, "options")
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=_settings,
    metavar="NAME=VALUE",
    help="A setting for the measures, such as decay=0.1. Repeatable.",
)
@flags.outputs(
    "Write a report (.html), with its tables as .md and .csv files next to it; or a table with a "
    f"row per figure ({or_of(TABLES)}).",
    ("html", *kinds_of(TABLES)),
    overwrite={
        "text": "Replace the report and the files next to it, or the table. Symbolic links are "
        "refused."
    },
)
@flags.resources
@flags.cluster(
    "Draw the samples of the evaluated indexes on a cluster. Its nodes must have GRAPH and the "
    "temporary directory (TMPDIR) at the same paths, or send samples through --staging-url."
)
@flags.takes(IndexOptions, "sent", only=("staging_url",))
@flags.takes(SourceOptions, "source", only=("bipartite", "no_cache"))
@flags.format
def evaluate(
    paths: tuple[str, ...],
    options: EvaluateOptions,
    settings: dict[str, Any],
    output: OutputOptions,
    limits: flags.ResourceLimits,
    source: SourceOptions,
    **where: Any,
) -> None:
    """Measure how good answers are: sibling Gamma, precision, recall, nDCG, text similarity.

    \b
    cocite evaluate links.tsv --labels topics.tsv        answers of cocite related
    cocite evaluate web.index --labels topics.tsv        one index or several
    cocite evaluate web.graph --labels topics.tsv        every measure on a graph

    Brackets, or ±, show 95% intervals: how much a figure would vary with other queries.
    """  # noqa: D301 - click wants the backspace itself
    from cocite.evaluation import evaluate as run
    from cocite.evaluation.report import figures_target
    from cocite.io.writers import Target
    from cocite.search.builds import BUILD_LOG

    kind, show = output.output_format, where["show"]
    typed = shlex.join(["cocite", *click.get_current_context().meta.get(GIVEN, ())])
    target = figures_target(output, safe=flags.safe_csv())
    paths = tuple(index_of(path, source, **limits) for path in paths)
    chosen = replace(options, settings=settings)
    how = {"cluster": where["cluster"], "staging_url": where["sent"].staging_url}
    with Stages(_UNITS) as stages, held(BUILD_LOG):
        found = run(*paths, progress=stages, options=chosen, **how, **limits)
        if isinstance(target, Path):
            stages("writing", 0, 0)
            found.write(target, kind=kind, overwrite=output.overwrite, command=typed)
        elif isinstance(target, Target):
            stages("writing", 0, 0)
            found.write_table(target)
    show(Reply(found, lambda: _text(found)))
    for note in (*(f"read {source}" for source in found.study.sources), *found.study.notes):
        say(note)
    if unknown := found.study.facts.get("rows_of_unknown_nodes"):
        say(f"{unknown:,} label rows have names that are not in the graph")
    if isinstance(target, Path):
        say(
            f"{output.output}: the report; tables and all figures are in the .md and .csv files "
            "next to it"
        )
    elif isinstance(target, Target):
        say(f"{target.label}: all figures, one per row")


def _text(found: StudyDocument) -> str:
    from cocite.evaluation.report import summary

    titles, rows = summary(found.study.methods)
    titles = [*titles[1:], titles[0]]
    narrow = [[*(_short(cell) for cell in row[1:]), row[0]] for row in rows]
    optional = [(title,) for title in titles[-2:0:-1]]
    return names_text(titles, narrow, None, optional, 10_000)


def _short(cell: str) -> str:
    """Shorten ``0.283 [0.271, 0.295]`` to ``0.283 ±0.012``, the half-width."""
    value, bracket, ends = cell.partition(" [")
    if not bracket:
        return cell
    low, high = ends.rstrip("]").split(", ")
    return f"{value} ±{(float(high) - float(low)) / 2:.3f}"


_NAME = 20
"""Width reserved for a candidate's name; the terminal wraps longer names."""


@click.command(cls=SectionedCommand)
@click.argument("graph", metavar="GRAPH|LINKS")
@click.option(
    "-o",
    "--output",
    metavar="FILE.toml",
    help="Write the chosen settings, for cocite index --settings. Progress is saved next to the "
    "file, so that an interrupted command can be resumed. By default, the settings are only "
    "printed.",
)
@flags.takes(TuneOptions, "options")
@flags.resources
@flags.cluster(
    "Draw the samples on a cluster. Its nodes must have GRAPH and FILE.toml at the same paths."
)
@flags.takes(IndexOptions, "sent", only=("staging_url",))
@flags.takes(SourceOptions, "source", only=("bipartite", "no_cache"))
@flags.format
def tune(
    graph: str,
    output: str | None,
    options: TuneOptions,
    limits: flags.ResourceLimits,
    source: SourceOptions,
    show: Show,
    **where: Any,
) -> None:
    """Find the measure, direction and settings that suit a stored GRAPH or LINKS.

    \b
    cocite tune web.graph -o index-settings.toml
    cocite index web.graph --settings index-settings.toml -o web.index

    It hides some of the links, tries every measure in all directions with a few values of its
    settings, and scores each list by its co-neighbors: pages that share the hidden links. Half of
    the pages select the best candidate, and the other half confirm it. The default is replaced only
    by a candidate that is significantly better on both halves. With --labels, no links are hidden,
    and half of the labeled pages select.
    """  # noqa: D301 - click wants the backspace itself
    from cocite.evaluation.tune import tune as run
    from cocite.search.builds import BUILD_LOG

    stored = graph_of(graph, source, **limits)
    with Stages({"round": "candidates"}) as stages, held(BUILD_LOG):
        found = run(
            stored,
            output,
            cluster=where["cluster"],
            staging_url=where["sent"].staging_url,
            progress=stages,
            options=options,
            **limits,
        )
    show(Reply(found, lambda: _tuned_text(found)))
    for note in found.notes:
        say(note)
    if output is not None:
        say(f"{output}: the settings, for cocite index {graph} --settings {output}")


def _tuned_text(found: TuningResult) -> str:
    titles = [found.by, "build", "size", "judged", "behind", "query", "candidate"]
    last = [each for each in found.tried if each.behind is not None]
    rows = [_row(each) for each in last]
    optional = [(title,) for title in titles[-2:0:-1]]
    hidden = f"; {found.hidden:,} of {found.links:,} links were hidden" if found.hidden else ""
    before = len(found.tried) - len(last)
    earlier = f"{counted(before, 'candidate')}; --format csv lists them"
    facts = {
        "chosen": f"{found.best.name}: {found.reason}",
        "by": f"{found.chosen_by:,} pages, evaluated on {found.judged_by:,} others{hidden}",
        "eliminated": earlier if before else "none",
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
