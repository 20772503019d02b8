"""``cocite similarity``: score two nodes, or many pairs from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from cocite.cli import flags
from cocite.cli.commands.completion import node_names
from cocite.cli.commands.related import is_open, numbers, unmet
from cocite.cli.console import Stages, say
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import IndexSource, as_stored, asks, narrowing, opened, preparing
from cocite.cli.output import Reply, Show, counted, facts_text, table_text
from cocite.deadline import clock
from cocite.io.readers import PAIRS, NameTable, ReadOptions
from cocite.io.writers import TABLES, kinds_of
from cocite.options.common import OutputOptions
from cocite.options.query import ScoreOptions

if TYPE_CHECKING:
    from cocite.io.writers import Columns
    from cocite.search import Index
    from cocite.search.pairs import Similarities
    from cocite.search.results import PairsDocument, SimilarityDocument


@click.command(cls=SectionedCommand)
@click.argument("index", metavar="INDEX|GRAPH|LINKS")
@click.argument("a", metavar="[A", required=False, shell_complete=node_names)
@click.argument("b", metavar="B]", required=False, shell_complete=node_names)
@click.option(
    "--pairs",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Score the pairs in this file instead of A and B. The file is Parquet or text (tabs, "
    "commas, semicolons, bars or blanks), with one pair per row.",
)
@click.option(
    "--pair-columns",
    metavar="A,B",
    help="With --pairs: the two node columns, by name or by number (from 1).  "
    "[default: the first two]",
)
@flags.outputs(
    "With --pairs: write a table of a, b, score, stderr, low and high (.parquet, .csv, .tsv, "
    ".jsonl or .arrow).",
    kinds_of(TABLES),
    output={"unset": "print it"},
)
@flags.takes(ScoreOptions, "level")
@asks
@flags.resources
@flags.format
def similarity(
    index: str,
    a: str | None,
    b: str | None,
    pairs: Path | None,
    pair_columns: str | None,
    **chosen: Any,
) -> None:
    """Print how similar A and B are, with an interval for the true score, or score the pairs in a
    file (--pairs).

    Write -- before names that begin with -.
    """
    asked = _SimilarityQuery(**chosen)
    if pairs is not None:
        if a is not None:
            raise click.UsageError(f"--pairs already provides all names: omit {a!r} or --pairs")
        _ask_pairs(index, pairs, pair_columns, asked)
        return
    for name in asked.output.changed():
        raise click.UsageError(f"{flags.flag_of(name)} needs --pairs FILE")
    if pair_columns:
        raise click.UsageError("--pair-columns needs --pairs FILE")
    if a is None or b is None:
        raise click.UsageError("pass two nodes, A and B, or a file of pairs (--pairs FILE)")
    from cocite.search.results import SimilarityDocument

    level = asked.level
    opened_index, settings = asked.opened(index, (a, b))
    a, b = as_stored(opened_index, index, (a, b), asked.source.where.side)
    with preparing(opened_index, level.refined):
        found = SimilarityDocument.of(opened_index, a, b, options=replace(level, settings=settings))
    closer = narrowing(opened_index.stored.measure, found.settings)
    asked.show(
        Reply(found, lambda: _similarity_text(found, closer) + unmet(found, level.target_error))
    )


class _SimilarityQuery(NamedTuple):
    output: OutputOptions
    level: ScoreOptions
    source: IndexSource
    limits: flags.ResourceLimits
    show: Show

    def opened(self, path: str, named: Sequence[str] = ()) -> tuple[Index, dict[str, Any]]:
        """Return the index, and the settings of the query."""
        return opened(path, self.source, named, **self.limits)


def _similarity_text(found: SimilarityDocument, closer: str) -> str:
    score, length = found.found, found.settings.get("length")
    value, error, low, high = numbers(score)
    held = ", for certain" if found.surely else f" ({found.confidence:.0%})"
    if closer and found.surely and is_open(score):
        held += f"; {closer} narrows it"
    meeting = ""
    hitting = found.settings.get("meeting_weight") == "hitting" and found.a != found.b
    if hitting and isinstance(length, int):
        mean = (1 - score.score) * (length + 1)
        meeting = f"{mean:.2f} steps on average, {length + 1} if they do not meet"
    titles = [f"  {title}" if title else "" for title in found.titles or ("", "")]
    return facts_text(
        {
            "a": found.a + titles[0],
            "b": found.b + titles[1],
            "score": value,
            "error": error,
            "interval": f"{low} to {high}{held}",
            "meeting": meeting,
        }
    )


Ids = NDArray[np.uint32]
_PIECE = 1 << 14
_NUMBERS = ("score", "stderr", "low", "high")


def _ask_pairs(path: str, file: Path, columns: str | None, asked: _SimilarityQuery) -> None:
    from cocite.search.results import PairsDocument, loss_of, query_of, reached

    level = asked.level
    index, settings = asked.opened(path)
    types = {"a": "VARCHAR", "b": "VARCHAR", **dict.fromkeys(_NUMBERS, "DOUBLE")}
    if index.titles is not None:
        types |= {"a_title": "VARCHAR", "b_title": "VARCHAR"}
    target = flags.target_for(asked.output, types, TABLES)
    begin = clock()
    wanted = tuple(columns.split(",")) if columns else ()
    first, second = _read(index, path, file, wanted, asked.source.where.side)
    with preparing(index, level.refined):
        pass
    with Stages({"scoring": "pairs"}) as stages:
        chosen = replace(level, settings=settings)
        found = index.similarities(first, second, ids=True, progress=stages, options=chosen)
    written = titles = None
    if target is not None:
        target.write_table(_pieces(index, found), types)
        written = target.label
    else:
        names, titled = index.nodes.stored, index.titles
        found = replace(found, a=list(names.names(first)), b=list(names.names(second)))
        if titled is not None:
            titles = titled.of(first), titled.of(second)
    how = *query_of(index, settings), level.confidence, level.interval, level.refined
    loss = loss_of(index) | reached(level.refined, level.target_error, found)
    document = PairsDocument(*how, found, titles, written, clock() - begin, loss)
    asked.show(Reply(document, lambda: _text(document) + unmet(document, level.target_error)))


def _read(
    index: Index, path: str, file: Path, columns: tuple[str, ...], side: str | None
) -> tuple[Ids, Ids]:
    from cocite.search.pairs import unknown_nodes

    names = index.nodes

    def is_name(name: str) -> bool:
        (stored,) = as_stored(index, path, [name], side)
        return names.find(stored) is not None

    table = NameTable(file, PAIRS, ReadOptions(columns=columns), is_name)
    rows, found = iter(table), [np.empty((0, 2), np.int64)]
    unknown: dict[str, None] = {}
    while piece := list(islice(rows, _PIECE)):
        typed = [name for row in piece for name in row]
        called = as_stored(index, path, typed, side)
        ids = names.found(called)
        unknown |= dict.fromkeys(called[i] for i in np.flatnonzero(ids < 0).tolist())
        found.append(ids.reshape(-1, 2))
    say(table.describe())
    if unknown:
        raise unknown_nodes(names, list(unknown))
    first, second = np.concatenate(found).astype(np.uint32).T
    return np.ascontiguousarray(first), np.ascontiguousarray(second)


def _pieces(index: Index, found: Similarities) -> Iterator[Columns]:
    for low in range(0, len(found), _PIECE):
        some = slice(low, low + _PIECE)
        piece: dict[str, Any] = {title: getattr(found, title)[some] for title in _NUMBERS}
        for title, ids in (("a", found.a), ("b", found.b)):
            numbers = np.asarray(ids[some])
            piece[title] = np.array(index.nodes.stored.names(numbers), object)
            if index.titles is not None:
                texts: Sequence[str] = index.titles.of(numbers)
                piece[f"{title}_title"] = np.array([text or None for text in texts], object)
        yield piece


def _text(found: PairsDocument) -> str:
    if found.output is not None:
        count = counted(len(found.pairs), "pair")
        return facts_text({"output": found.output, "pairs": f"{count} in {found.seconds:.1f} s"})
    if not len(found.pairs):
        return "no pairs"
    pairs = zip(found.pairs, found.pairs.a, found.pairs.b, strict=True)
    rows = [[*numbers(score), a, b] for score, a, b in pairs]
    return table_text(("score", "error", "low", "high", "a", "b"), rows)
