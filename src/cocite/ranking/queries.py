"""Sets of nodes that stand for the results of a search: given by name, or found by words.

PageRank orders what a search finds, so what counts is the order within its results (Haveliwala,
*Efficient computation of PageRank*, 5.2). cocite has no text of pages; their names are often made
of words, in URLs and in titles.

A word is a run of letters and digits, in any case; what is URL-encoded is decoded first. A node is
found if its name has all words asked for, as in the paper's conjunctive queries.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, UsageError
from cocite.graph import Graph

__all__ = ["Query", "query_of_nodes", "query_of_words"]

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


def query_of_words(graph: Graph, words: str) -> Query:
    """The nodes whose names have all of ``words``.

    Raises :class:`~cocite.errors.UsageError` if there are no words, or no such nodes.
    """
    wanted = set(_words(words))
    if not wanted:
        raise UsageError(f"{words!r} has no words to look for: letters or digits")
    # Most names are ruled out by the cheaper question.
    longest = max(wanted, key=len)
    found = [
        node
        for node, name in enumerate(graph.names)
        if longest in unquote(name).casefold() and wanted.issubset(_words(name))
    ]
    if not found:
        raise UsageError(
            f"no name of {graph.nodes:,} has all of the words {' '.join(sorted(wanted))!r}. Ask "
            "for fewer, or name the nodes in a file"
        )
    return Query(words, np.array(found, np.uint32))


def _words(text: str) -> list[str]:
    return _WORD.findall(unquote(text).casefold())
