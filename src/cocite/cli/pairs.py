"""What ``cocite similarity --pairs`` does: pairs out of a file, and where their scores go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.cli.asking import opened, preparing
from cocite.cli.called import as_stored
from cocite.cli.outputs import Reply, Show
from cocite.cli.progress import Stages
from cocite.cli.query import error_text
from cocite.cli.text import counted, facts_text, say, table_text
from cocite.compiled.clock import clock
from cocite.graph.readers import PairRows, ReadOptions

if TYPE_CHECKING:
    from cocite.graph.writers import Columns, Types
    from cocite.query import Index
    from cocite.query.documents import PairsDocument
    from cocite.query.similarities import Similarities

__all__ = ["run_pairs"]

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
    from cocite.graph.writers import TABLES, target_of
    from cocite.query.documents import PairsDocument, asked_of, loss_of

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
    asked = asked_of(index, settings)
    document = PairsDocument(*asked, *told, found, titles, written, clock() - begin, loss_of(index))
    show(Reply(document, lambda: _text(document)))


def _read(
    index: Index, path: str, file: Path, columns: tuple[str, ...], side: str | None
) -> tuple[Ids, Ids]:
    """The ids of all pairs in a file; raises :class:`~cocite.errors.UsageError`."""
    from cocite.query.similarities import unknown_nodes

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
