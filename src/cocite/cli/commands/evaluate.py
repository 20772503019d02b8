"""``cocite evaluate``: how good are the answers, by labels and by texts."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocite.cli import GIVEN
from cocite.cli.console import Stages
from cocite.cli.help import SectionedVerb
from cocite.cli.link_files import bipartite_option, cache_option, index_of
from cocite.cli.options import cluster_option, format_option, resource_options, safe_csv, via_option
from cocite.cli.output import Reply, Show, fitting, or_of, say, table_text, unsaid
from cocite.cli.targets import kind_option, to_options
from cocite.io.readers.contract import DELIMITERS
from cocite.io.writers import TABLES, kinds_of

if TYPE_CHECKING:
    from cocite.evaluation.report import StudyDocument


_UNITS = {
    "loading": "bytes",
    "judging": "queries",
    "reading": "",
}


def numbers_option(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    """Whole numbers with commas between them, such as 1,5,10; None if there are none."""
    try:
        return None if value is None else tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is no list of whole numbers such as 1,5,10") from None


def _columns(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    return None if value is None else tuple(part.strip() for part in value.split(","))


_LABELS = (
    click.option(
        "--label-columns",
        callback=_columns,
        metavar="A,B",
        help="The columns of name and category, by their names or by numbers from 1.  "
        "[default: 1,2]",
    ),
    click.option(
        "--delimiter",
        type=click.Choice(["auto", *DELIMITERS], case_sensitive=False),
        help="Between columns, in the table of labels.  [default: auto]",
    ),
    click.option(
        "--header",
        type=click.Choice(["auto", "yes", "no"], case_sensitive=False),
        help="Whether the first row names the columns, in the table of labels.  [default: auto]",
    ),
    click.option(
        "--skip-bad-rows",
        is_flag=True,
        help="Leave malformed rows of the labels out, if they are at most half of them.",
    ),
    click.option("--skip-all-bad-rows", is_flag=True, help="The same, however many they are."),
)


def label_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add how a table of labels is read; what is not said is None."""

    @wraps(command)
    def called(*given: Any, **options: Any) -> Any:
        some, every = options.pop("skip_bad_rows"), options.pop("skip_all_bad_rows")
        return command(*given, skip_bad_rows="all" if every else some or None, **options)

    for option in reversed(_LABELS):
        called = option(called)
    return called


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


@click.command(cls=SectionedVerb)
@click.argument("paths", metavar="[INDEX|GRAPH|LINKS]...", nargs=-1)
@click.option(
    "--labels",
    metavar="FILE",
    help="A table of names and categories: text (tabs, commas, semicolons, bars or blanks) or "
    "Parquet.",
)
@label_options
@click.option(
    "--separator",
    metavar="TEXT",
    help='What separates the parts of a category, the most general first; "" for nothing.  '
    "[default: .]",
)
@click.option(
    "--depth",
    type=click.IntRange(1),
    help="How many parts of a category make a class, for sibling Gamma.  [default: as many as "
    "most have]",
)
@click.option(
    "--gamma-least",
    type=click.FloatRange(0),
    metavar="SCORE",
    help="Compare only nodes that score more than this, for sibling Gamma.  [default: 0]",
)
@click.option(
    "--texts", metavar="PATH", help="The texts of the nodes: a folder, a tar archive, or a table."
)
@click.option(
    "--queries",
    type=click.IntRange(1),
    help="Ask for so many nodes only, drawn by --seed.  [default: all that have a label or a text]",
)
@click.option(
    "--cutoffs",
    callback=numbers_option,
    metavar="LIST",
    help="The values of k in precision@k and the like, such as 1,5,10.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=_settings,
    metavar="NAME=VALUE",
    help="A setting of the measures, such as decay=0.1. Repeatable.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write a report (.html), with its tables as .md and .csv beside it; or a table with a row "
    f"a figure ({or_of(TABLES)}).",
)
@kind_option(["html", *kinds_of(TABLES)])
@to_options
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Where the random numbers start. Equal seeds give equal figures.",
)
@resource_options
@cluster_option(
    "Draw the samples of indexes that are made to be judged on a cluster. Its nodes see GRAPH and "
    "the directory of temporary files (TMPDIR) by the same paths, or samples come by --staging-url."
)
@via_option
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the report and the files beside it, or the table. A symbolic link is refused.",
)
@bipartite_option
@cache_option
@format_option
def evaluate(
    paths: tuple[str, ...],
    output: str | None,
    kind: str | None,
    to: str | None,
    append: bool,
    overwrite: bool,
    bipartite: bool,
    no_cache: bool,
    show: Show,
    **data: Any,
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
    from cocite.search.open import BUILD_LOG

    how: dict[str, Any] = {"overwrite": overwrite, "append": append, "safe": safe_csv()}
    target = figures_target(output, to=to, kind=kind, **how)
    means = {name: data[name] for name in ("memory", "threads")}
    paths = tuple(index_of(path, no_cache=no_cache, bipartite=bipartite, **means) for path in paths)
    with Stages(_UNITS) as stages, unsaid(BUILD_LOG):
        found = run(*paths, progress=stages, **data)
        if isinstance(target, Path):
            stages("writing", 0, 0)
            found.write(target, kind=kind, overwrite=overwrite, command=_typed())
        elif isinstance(target, Target):
            stages("writing", 0, 0)
            found.write_table(target)
    show(Reply(found, lambda: _text(found)))
    for note in _notes(found):
        say(note)
    if isinstance(target, Path):
        say(f"{output}: the report; tables and all figures are in .md and .csv beside it")
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
    """The table of methods that fits the terminal, and what there was no room for."""
    from cocite.evaluation.report import summary

    titles, rows = summary(found.study.methods)
    titles = [*titles[1:], titles[0]]
    narrow = [[*(_short(cell) for cell in row[1:]), row[0]] for row in rows]
    kept = fitting(titles, narrow)
    text = table_text([titles[i] for i in kept], [[row[i] for i in kept] for row in narrow])
    left = ", ".join(title for i, title in enumerate(titles) if i not in kept)
    if left:
        text += f"\nleft out, for want of width: {left}; --format csv has them"
    return text


def _short(cell: str) -> str:
    """``0.283 [0.271, 0.295]`` as ``0.283 ±0.012``: half the interval, to fit a terminal."""
    value, bracket, ends = cell.partition(" [")
    if not bracket:
        return cell
    low, high = ends.rstrip("]").split(", ")
    return f"{value} ±{(float(high) - float(low)) / 2:.3f}"
