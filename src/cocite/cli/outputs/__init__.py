"""Ways to print an answer: a file each, and the table that finds them by name.

A verb hands over one :class:`Reply` and does not know how it is printed. A new way is a file in
this folder with a function ``show(reply)``, and a line of ``OUTPUTS``. Kinds of graphs are those of
``graph/writers``, for verbs that answer with one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import cast

from cocite.documents import Document

__all__ = ["GRAPH_OUTPUTS", "OUTPUTS", "Reply", "Show", "output_called", "prints_json"]

OUTPUTS = {
    "table": "cocite.cli.outputs.table",
    "json": "cocite.cli.outputs.json",
    "csv": "cocite.cli.outputs.csv",
    "markdown": "cocite.cli.outputs.markdown",
}
"""What ``--format`` may be, the default first -> the module that prints it."""


@dataclass(frozen=True)
class Reply:
    """What a verb answers: the ``document`` for programs, and ``text()``, made when it is needed,
    for people: empty if there is nothing to print. ``graph(kind)`` is the same as a graph, of verbs
    that offer it.
    """

    document: Document
    text: Callable[[], str]
    graph: Callable[[str], str] | None = None


Show = Callable[[Reply], None]

GRAPH_OUTPUTS = ["graphml", "gexf", "dot"]
"""What ``--format`` may be beside, of a verb that answers with a graph: what ``graph/writers`` has,
named here as nobody else waits for these."""


def output_called(name: str, *, safe: bool = False) -> Show:
    """The function that prints a reply in the format ``name``, CSV ``safe`` for spreadsheets or
    not.
    """
    if name in GRAPH_OUTPUTS:
        return partial(_show_graph, name)
    show = import_module(OUTPUTS[name]).show
    return cast(Show, partial(show, safe=True) if safe and name == "csv" else show)


def _show_graph(kind: str, reply: Reply) -> None:
    """Print the graph of a reply."""
    assert reply.graph is not None
    sys.stdout.write(reply.graph(kind))


def prints_json(show: Show) -> bool:
    """Whether it is JSON that is printed."""
    return show is output_called("json")
