"""Sets of nodes that represent the results of a search: listed by name, or found by words.

PageRank orders the results of a search, so the order within these results matters (Haveliwala,
*Efficient computation of PageRank*, 5.2). A node is found if its text contains all words of the
query, as in the paper's conjunctive queries. Without texts, its name must contain them: names such
as URLs and titles often consist of words.

A word is a run of letters and digits, regardless of case. URL-encoded names are decoded first.

Cost: a pass over all names, or all texts, for any number of queries.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, UsageError
from cocite.graph import Graph
from cocite.io.readers.tables import texts_of

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Query:
    """``nodes`` uint32, ascending ids without duplicates, under a ``label``."""

    label: str
    nodes: NDArray[np.uint32]


def query_of_nodes(graph: Graph, file: str | os.PathLike[str]) -> Query:
    """The nodes that a file names, one a line in UTF-8; empty lines are passed over.

    Raises :class:`~cocite.errors.InputError`, :class:`~cocite.errors.UnknownNode`, and
    :class:`~cocite.errors.UsageError` if it names none.
    """
    path = Path(file)
    try:
        lines = path.read_text("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no text in UTF-8, at byte {error.start:,}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    names = [name for name in (line.rstrip("\r") for line in lines) if name]
    if not names:
        raise UsageError(f"{path} names no nodes: give one name a line")
    return Query(path.name, np.unique(graph.names.ids(names)))


def query_of_words(graph: Graph, words: str, texts: str | os.PathLike[str] | None = None) -> Query:
    """The nodes whose texts have all of ``words``; without ``texts``, those whose names do.

    ``texts`` is a folder, a tar archive or a table (:mod:`cocite.io.readers.tables`).

    Raises :class:`~cocite.errors.UsageError` if there are no words, or no such nodes, and
    :class:`~cocite.errors.InputError` for texts that cannot be read.
    """
    return queries_of_words(graph, [words], texts)[0]


def queries_of_words(
    graph: Graph, queries: Sequence[str], texts: str | os.PathLike[str] | None = None
) -> list[Query]:
    """:func:`query_of_words` for each of some ``queries``, by one pass over the texts."""
    wanted = [set(_words(unquote(words))) for words in queries]
    for words, those in zip(queries, wanted, strict=True):
        if not those:
            raise UsageError(f"{words!r} has no words to look for: letters or digits")
    longest = [max(those, key=len) for those in wanted]
    found: list[list[int]] = [[] for _ in wanted]
    for node, text in _texts(graph, texts) if wanted else ():
        folded, there = text.casefold(), None
        for those, word, nodes in zip(wanted, longest, found, strict=True):
            if word not in folded:
                continue  # which rules out most, and is the cheaper question
            there = set(_words(text)) if there is None else there
            if those <= there:
                nodes.append(node)
    for those, nodes in zip(wanted, found, strict=True):
        if not nodes:
            what = f"name of {graph.nodes:,}" if texts is None else f"text in {texts}"
            raise UsageError(
                f"no {what} has all of the words {' '.join(sorted(those))!r}. Ask for fewer, or "
                "name the nodes in a file"
            )
    return [
        Query(words, np.unique(np.array(nodes, np.uint32)))
        for words, nodes in zip(queries, found, strict=True)
    ]


def _texts(graph: Graph, texts: str | os.PathLike[str] | None) -> Iterator[tuple[int, str]]:
    """What words are looked for in, with the ids of the nodes."""
    if texts is not None:
        return texts_of(Path(texts), graph.names)
    return ((node, unquote(name)) for node, name in enumerate(graph.names.stored))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
