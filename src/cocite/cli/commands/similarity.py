"""What ``cocite similarity --pairs`` does: pairs out of a file, and where their scores go.

``cocite similarity``: how similar two nodes are, or the nodes of many pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from cocite.cli.called import as_stored
from cocite.cli.commands.related import bound_option, confidence_option, error_text, is_open, unmet
from cocite.cli.completion import node_names
from cocite.cli.console import Stages
from cocite.cli.help import SectionedVerb
from cocite.cli.inputs import narrowing, opened, preparing, query_options, refine_options
from cocite.cli.options import format_option, resource_options, safe_csv
from cocite.cli.output import Reply, Show, counted, facts_text, say, table_text
from cocite.cli.targets import kind_option, to_options
from cocite.compiled.clock import clock
from cocite.io.readers import PairRows, ReadOptions
from cocite.io.writers import TABLES, kinds_of

if TYPE_CHECKING:
    from cocite.io.writers import Columns, Types
    from cocite.search import Index
    from cocite.search.pairs import Similarities
    from cocite.search.results import PairsDocument, SimilarityDocument


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
@query_options
@resource_options
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
    from cocite.search.results import SimilarityDocument

    opened_index, settings = opened(index, options, (a, b))
    a, b = as_stored(opened_index, index, (a, b), options["side"])
    with preparing(opened_index, refine or target_error is not None):
        found = SimilarityDocument.of(opened_index, a, b, **level, **settings)
    closer = narrowing(opened_index.stored.measure, found.settings)
    show(Reply(found, lambda: _similarity_text(found, closer) + unmet(found, target_error)))


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


# -- pairs -------------------------------------------------------------------------------


Ids = NDArray[np.uint32]
_PIECE = 1 << 14
_NUMBERS = ("score", "stderr", "low", "high")


def run_pairs(
    path: str,
    file: Path,
    columns: str | None,
    where: tuple[str | None, str | None, dict[str, Any]],
    level: dict[str, Any],
    show: Show,
    options: dict[str, Any],
) -> None:
    """Ask what is at ``path`` for all pairs in ``file``; ``where`` are the output, the table of a
    database, and how they are written.
    """
    from cocite.io.writers import TABLES, target_of
    from cocite.search.results import PairsDocument, loss_of, query_of, reached

    output, to, how = where
    index, settings = opened(path, options)
    types = _types(index)
    target = target_of(output, to, types=types, endings=TABLES, **how)
    begin = clock()
    wanted = tuple(columns.split(",")) if columns else ()
    first, second = _read(index, path, file, wanted, options["side"])
    refined = level["refine"] or level["target_error"] is not None
    with preparing(index, refined):
        pass
    with Stages({"scoring": "pairs"}) as stages:
        found = index.similarities(first, second, ids=True, progress=stages, **level, **settings)
    written = titles = None
    if target is not None:
        target.write_table(_pieces(index, found), types)
        written = target.label
    else:
        names, titled = index.nodes.stored, index.titles
        found = replace(found, a=_texts(names.names, first), b=_texts(names.names, second))
        if titled is not None:
            titles = _texts(titled.of, first), _texts(titled.of, second)
    told = level["confidence"], level["bound"], refined
    asked = query_of(index, settings)
    loss = loss_of(index) | reached(refined, level["target_error"], found)
    document = PairsDocument(*asked, *told, found, titles, written, clock() - begin, loss)
    show(Reply(document, lambda: _text(document) + unmet(document, level["target_error"])))


def _read(
    index: Index, path: str, file: Path, columns: tuple[str, ...], side: str | None
) -> tuple[Ids, Ids]:
    """The ids of all pairs in a file; raises :class:`~cocite.errors.UsageError`."""
    from cocite.search.pairs import unknown_nodes

    names = index.nodes

    def is_name(name: str) -> bool:
        (stored,) = as_stored(index, path, [name], side)
        return names.find(stored) is not None

    table = PairRows(file, ReadOptions(columns=columns), is_name)
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


def _texts(of: Callable[[Ids], list[str]], ids: Ids) -> list[str]:
    """Texts of some ids, some thousand at a time."""
    pieces = (of(ids[low : low + _PIECE]) for low in range(0, ids.size, _PIECE))
    return [text for piece in pieces for text in piece]


def _types(index: Index) -> Types:
    """The columns of what is written."""
    types = {"a": "VARCHAR", "b": "VARCHAR", **dict.fromkeys(_NUMBERS, "DOUBLE")}
    titles = {} if index.titles is None else {"a_title": "VARCHAR", "b_title": "VARCHAR"}
    return types | titles


def _pieces(index: Index, found: Similarities) -> Iterator[Columns]:
    """Rows with names, some thousand at a time."""
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
    """What people read."""
    if found.output is not None:
        count = counted(len(found.pairs), "pair")
        return facts_text({"output": found.output, "pairs": f"{count} in {found.seconds:.1f} s"})
    if not len(found.pairs):
        return "no pairs"
    rows = [
        (f"{s.score:.4f}", error_text(s.stderr), f"{s.low:.4f}", f"{s.high:.4f}", a, b)
        for s, a, b in zip(found.pairs, found.pairs.a, found.pairs.b, strict=True)
    ]
    return table_text(("score", "error", "low", "high", "a", "b"), rows)
