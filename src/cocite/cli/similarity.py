"""``cocite similarity``: how similar two nodes are, or the nodes of many pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocite.cli.asking import asking_options, narrowing, opened, preparing, refine_options
from cocite.cli.called import as_stored
from cocite.cli.completion import node_names
from cocite.cli.links import dialect_options
from cocite.cli.options import SectionedVerb, format_option, means_options, safe_csv
from cocite.cli.outputs import Reply, Show
from cocite.cli.query import bound_option, confidence_option, error_text, is_open
from cocite.cli.targets import kind_option, to_options
from cocite.cli.text import facts_text
from cocite.graph.writers import TABLES, kinds_of

if TYPE_CHECKING:
    from cocite.query.documents import SimilarityDocument

__all__ = ["similarity"]

_KINDS = kinds_of(TABLES)


@click.command(cls=SectionedVerb)
@click.argument("index", metavar="INDEX|GRAPH|LINKS")
@click.argument("a", metavar="[A", required=False, shell_complete=node_names)
@click.argument("b", metavar="B]", required=False, shell_complete=node_names)
@click.option(
    "--pairs",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Ask for many pairs, in the place of A and B: the rows of this file, text (tabs, commas, "
    "semicolons, bars or blanks) or Parquet.",
)
@click.option(
    "--pair-columns",
    metavar="A,B",
    help="With --pairs: the columns of the two names, by title or number.  [default: the first "
    "two]",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="With --pairs: write a table of a, b, score, stderr, low and high (.parquet, .csv, .tsv, "
    ".jsonl or .arrow).  [default: print it]",
)
@kind_option(_KINDS)
@to_options
@click.option("--overwrite", is_flag=True, help="Replace the file, or the table, that is there.")
@refine_options
@confidence_option
@bound_option
@dialect_options
@asking_options
@means_options
@format_option
def similarity(
    index: str,
    a: str | None,
    b: str | None,
    pairs: Path | None,
    pair_columns: str | None,
    output: str | None,
    kind: str | None,
    to: str | None,
    append: bool,
    overwrite: bool,
    show: Show,
    refine: bool,
    target_error: float | None,
    confidence: float,
    bound: str,
    **options: Any,
) -> None:
    """Tell how similar the nodes A and B are, with the interval that holds the true score; or the
    nodes of each pair in a file (--pairs).

    Write -- before names that begin with -.
    """
    level: dict[str, Any] = {
        "refine": refine,
        "target_error": target_error,
        "confidence": confidence,
        "bound": bound,
    }
    if pairs is not None:
        if a is not None:
            raise click.UsageError(
                f"{a!r} is named beside --pairs, which has all that is asked: leave one of the two "
                "out"
            )
        from cocite.cli.pairs import run_pairs

        how = {"kind": kind, "overwrite": overwrite, "append": append, "safe": safe_csv()}
        run_pairs(index, pairs, pair_columns, (output, to, how), level, show, options)
        return
    for name, value in (
        ("--pair-columns", pair_columns),
        ("--output", output),
        ("--kind", kind),
        ("--to", to),
        ("--append", append),
        ("--overwrite", overwrite),
    ):
        if value:
            raise click.UsageError(f"{name} goes with --pairs FILE")
    if a is None or b is None:
        raise click.UsageError("name two nodes, A and B; or a file of pairs, with --pairs")
    from cocite.query.documents import SimilarityDocument

    opened_index, settings = opened(index, options, (a, b))
    a, b = as_stored(opened_index, index, (a, b), options["side"])
    with preparing(opened_index, refine or target_error is not None):
        found = SimilarityDocument.of(opened_index, a, b, **level, **settings)
    closer = narrowing(opened_index.stored.measure, found.settings)
    show(Reply(found, lambda: _similarity_text(found, closer)))


def _similarity_text(found: SimilarityDocument, closer: str) -> str:
    score = found.found
    held = ", for certain" if found.surely else f" ({found.confidence:.0%})"
    if closer and found.surely and is_open(score):
        held += f"; {closer} narrows it"
    length = found.settings.get("length")
    steps = {}
    if found.settings.get("by") == "hitting" and isinstance(length, int) and found.a != found.b:
        mean = (1 - score.score) * (length + 1)
        steps = {"meeting": f"{mean:.2f} steps on average, {length + 1} where they do not meet"}
    return facts_text(
        {
            "a": _called(found.a, found.titles, 0),
            "b": _called(found.b, found.titles, 1),
            "score": f"{score.score:.4f}",
            "error": error_text(score.stderr),
            "interval": f"{score.low:.4f} to {score.high:.4f}{held}",
            **steps,
        }
    )


def _called(node: str, titles: Sequence[str] | None, place: int) -> str:
    """A name, and its title, if it has one."""
    return f"{node}  {titles[place]}" if titles and titles[place] else node
