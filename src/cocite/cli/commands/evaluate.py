"""``cocite evaluate``: how good are the answers, by labels and by texts."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocite.cli import GIVEN
from cocite.cli.console import Stages, say
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import index_of
from cocite.cli.options import cluster_option, format_option, resource_options, safe_csv, takes
from cocite.cli.output import Reply, held, names_text, or_of
from cocite.io.writers import TABLES, kinds_of
from cocite.options.build import IndexOptions
from cocite.options.common import OutputOptions
from cocite.options.evaluate import EvaluateOptions
from cocite.options.source import SourceOptions

if TYPE_CHECKING:
    from cocite.evaluation.report import StudyDocument


_UNITS = {
    "loading": "bytes",
    "judging": "queries",
    "reading": "",
}


def _settings(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, Any]:
    """``name=value`` pairs; the value a number, true or false, or a word."""
    import json

    found: dict[str, Any] = {}
    for text in values:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE, such as decay=0.1")
        try:
            found[name.replace("-", "_")] = json.loads(value)
        except ValueError:
            found[name.replace("-", "_")] = value
    return found


@click.command(cls=SectionedCommand)
@click.argument("paths", metavar="[INDEX|GRAPH|LINKS]...", nargs=-1)
@takes(EvaluateOptions, "options")
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=_settings,
    metavar="NAME=VALUE",
    help="A setting of the measures, such as decay=0.1. Repeatable.",
)
@takes(
    OutputOptions,
    "output",
    output={
        "text": "Write a report (.html), with its tables as .md and .csv beside it; or a table "
        f"with a row a figure ({or_of(TABLES)})."
    },
    output_format={"choices": ("html", *kinds_of(TABLES))},
    overwrite={
        "text": "Replace the report and the files beside it, or the table. A symbolic link is "
        "refused."
    },
)
@resource_options
@cluster_option(
    "Draw the samples of indexes that are made to be judged on a cluster. Its nodes see GRAPH and "
    "the directory of temporary files (TMPDIR) by the same paths, or samples come by --staging-url."
)
@takes(IndexOptions, "sent", only=("staging_url",))
@takes(SourceOptions, "source", only=("bipartite", "no_cache"))
@format_option
def evaluate(
    paths: tuple[str, ...],
    options: EvaluateOptions,
    settings: dict[str, Any],
    output: OutputOptions,
    memory: int | None,
    threads: int | None,
    source: SourceOptions,
    **where: Any,
) -> None:
    """Tell how good the answers are: sibling Gamma, precision, recall, nDCG, likeness of texts.

    \b
    cocite evaluate links.tsv --labels topics.tsv        what cocite related answers of a file
    cocite evaluate web.index --labels topics.tsv        one index, or several
    cocite evaluate web.graph --labels topics.tsv        every measure on a graph

    The brackets, or ±, are 95 % intervals: how much a figure would vary with other queries.
    """  # noqa: D301 - click wants the backspace itself
    from cocite.evaluation import evaluate as run
    from cocite.evaluation.report import figures_target
    from cocite.io.writers import Target
    from cocite.search.builds import BUILD_LOG

    kind, show = output.output_format, where["show"]
    target = figures_target(output, safe=safe_csv())
    means = {"memory": memory, "threads": threads}
    paths = tuple(index_of(path, source, **means) for path in paths)
    chosen = replace(options, settings=settings)
    how = {"cluster": where["cluster"], "staging_url": where["sent"].staging_url}
    with Stages(_UNITS) as stages, held(BUILD_LOG):
        found = run(*paths, progress=stages, options=chosen, **how, **means)
        if isinstance(target, Path):
            stages("writing", 0, 0)
            found.write(target, kind=kind, overwrite=output.overwrite, command=_typed())
        elif isinstance(target, Target):
            stages("writing", 0, 0)
            found.write_table(target)
    show(Reply(found, lambda: _text(found)))
    for note in _notes(found):
        say(note)
    if isinstance(target, Path):
        say(f"{output.output}: the report; tables and all figures are in .md and .csv beside it")
    elif isinstance(target, Target):
        say(f"{target.label}: all figures, a row each")


def _typed() -> str:
    """The command that was given."""
    return shlex.join(["cocite", *click.get_current_context().meta.get(GIVEN, ())])


def _notes(found: StudyDocument) -> list[str]:
    """What is to be said beside the figures."""
    notes = [*(f"read {source}" for source in found.study.sources), *found.study.notes]
    unknown = found.study.facts.get("rows_of_unknown_nodes")
    if unknown:
        notes.append(f"{unknown:,} rows of the labels name nodes that are not in the graph")
    return notes


def _text(found: StudyDocument) -> str:
    """The table of methods, as much of it as fits the terminal."""
    from cocite.evaluation.report import summary

    titles, rows = summary(found.study.methods)
    titles = [*titles[1:], titles[0]]
    narrow = [[*(_short(cell) for cell in row[1:]), row[0]] for row in rows]
    optional = [(title,) for title in titles[-2:0:-1]]
    return names_text(titles, narrow, None, optional, 10_000)


def _short(cell: str) -> str:
    """``0.283 [0.271, 0.295]`` as ``0.283 ±0.012``: half the interval, to fit a terminal."""
    value, bracket, ends = cell.partition(" [")
    if not bracket:
        return cell
    low, high = ends.rstrip("]").split(", ")
    return f"{value} ±{(float(high) - float(low)) / 2:.3f}"
