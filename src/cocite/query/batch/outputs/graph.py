"""The k-nearest graph: every page, and a link to each of its hits, for Gephi and the like.

    node    label (the name), title               link    weight (the score), rank, stderr

Links have a direction: that a page is among the nearest to another does not say that this is among
the nearest to it. Pages without hits are there, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from cocite.graph.writers import GRAPHS
from cocite.graph.writers.graphs import GraphPiece, GraphShape
from cocite.query.batch.outputs.output import Output, Pages
from cocite.store import check_file, written_from

__all__ = ["output"]

_LINK = {"rank": "int", "stderr": "double"}
_TITLE = {"title": "string"}


def _piece(pages: Pages) -> GraphPiece:
    columns = pages.columns
    facts = {}
    if pages.titles is not None and pages.node_titles is not None:
        facts["title"] = np.concatenate([pages.node_titles, pages.titles])
    return GraphPiece(
        np.concatenate([pages.ids, pages.related_ids]),
        np.concatenate([pages.nodes, pages.related]),
        facts,
        np.repeat(pages.ids, pages.counts),
        pages.related_ids,
        pages.scores,
        {title: columns[title] for title in _LINK},
    )


class _Graph(Output):
    twice = True

    def __init__(self, kind: str) -> None:
        self.kind, self._writer = kind, GRAPHS[f".{kind}"]

    def check(self, path: Path, overwrite: bool) -> Path:
        return check_file(path, overwrite)

    def write(
        self,
        path: Path,
        pages: Iterable[Pages],
        empty: Pages,
        scratch: Path,
        facts: dict[str, Any],
    ) -> int:
        shape = GraphShape(_TITLE if empty.titles is not None else {}, _LINK, _about(facts))
        with written_from(scratch, path) as file:
            self._writer.write(Path(file.name), map(_piece, pages), shape)
            return Path(file.name).stat().st_size

    def trial(self, pages: Iterable[Pages], scratch: Path) -> tuple[int, float]:
        began, found = time.perf_counter(), list(pages)
        path = scratch / f"trial.{self.kind}"
        shape = GraphShape(_TITLE if found[0].titles is not None else {}, _LINK)
        self._writer.write(path, map(_piece, found), shape)
        return path.stat().st_size, time.perf_counter() - began


def _about(facts: dict[str, Any]) -> str:
    made = facts.get("made", {})
    return f"the {facts['k']} pages nearest to each of {facts['nodes']:,}, by {made.get('measure')}"


def output(kind: str) -> Output:
    """The graph of that kind."""
    return _Graph(kind)
