"""The front page: search, indexes, and nodes to start from, each with a small map.

The candidates are up to 32 nodes with medium in-degrees. The first start is the candidate with the
clearest groups; each next start is the candidate least similar to those chosen. Starts are computed
once per index generation, in the background, while the page's script polls for them. Maps are
computed one at a time, so that queries can run in between.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from cocite.search import Index
from cocite.search.hits import Hit
from cocite.search.resolver import starters
from cocite.server.pages import graph_map, map_layout
from cocite.server.pages.page import frame, related, sent
from cocite.server.pages.view import PageState, filled, readable, weights_of
from cocite.server.requests import pairs_of

if TYPE_CHECKING:
    from cocite.server.service import ServedQuery, Service

_CARDS, _CANDIDATES, _NAMED = 8, 32, 3
"""Numbers of starts on the page, of candidates, and of hits named on a card."""
_PATIENCE, _LONGEST = 0.02, 5.0
"""Seconds that the page waits for starts; seconds for examining candidates."""
_NEAREST = 4
"""Number of similarities per hit that count for groups, as on the map."""
_DRAWS = 8
"""Maximum number of random pages to try, to find one with related pages."""
_WIDE, _TALL, _SMALL = 252, 120, 0.36
"""Size of a small map, and relative size of the nodes."""
_LINES = 24
"""Maximum number of lines in a small map, which keeps it below 1.5 kB."""


@dataclass(frozen=True)
class Start:
    """A node to start from: name, title, first hits, and small map."""

    name: str
    title: str | None
    hits: str
    drawing: Markup


@dataclass(frozen=True)
class _Candidate:
    """A candidate: hits, similarities between hits, and how clear the hits' groups are."""

    hits: list[Hit]
    near: NDArray[np.float64]
    clear: float


async def front_page(
    service: Service, request: Request, state: PageState, asking: ServedQuery
) -> Response:
    """Create the front page, shown if there is no query."""
    starts = await _starts(service, asking)
    values = frame(service, state, "Related pages") | {"served": service.indexes()}
    values |= {"starts": starts, "href": lambda name: state.for_nodes(name).href()}
    headers = {"Cache-Control": "no-cache"} if starts is None else {}
    return sent(service, request, filled("front.html", values), asking, headers=headers)


async def _starts(service: Service, asking: ServedQuery) -> list[Start] | None:
    """Return an index's starts; None until they are ready."""
    tasks, made_of = service.starts, asking.held.generation
    if made_of not in tasks or tasks[made_of].get_loop() is not asyncio.get_running_loop():
        for gone in tasks.keys() - {each.now.generation for each in service.holders.values()}:
            tasks.pop(gone).cancel()
        tasks[made_of] = asyncio.create_task(_choose(service, asking.name))
    task: asyncio.Task[list[Start]] = tasks[made_of]
    await asyncio.wait({task}, timeout=_PATIENCE)
    if not task.done():
        return None
    if task.cancelled() or task.exception() is not None:
        del tasks[made_of]  # the next page tries again
        return None
    return task.result()


async def _choose(service: Service, name: str) -> list[Start]:
    with service.serving("related", {"index": name}) as asking:
        index, end = asking.held.index, time.monotonic() + _LONGEST
        found: dict[str, _Candidate] = {}
        for node in await service.done(partial(starters, index, _CANDIDATES), adapts=False):
            if time.monotonic() > end:
                break
            candidate = await service.done(partial(_candidate_of, index, node), adapts=False)
            if candidate is not None:
                found[node] = candidate
        starts = []
        for node in await service.done(partial(_least_similar, index, found), adapts=False):
            drawn = partial(_start_of, index, node, found[node])
            starts.append(await service.done(drawn, adapts=False))
        return starts


def _candidate_of(index: Index, node: str) -> _Candidate | None:
    hits = list(index.related(node, graph_map.MOST))
    if not hits:
        return None
    near = graph_map.closeness(index, [str(hit.node) for hit in hits], {})
    nearest = map_layout.nearest(near, _NEAREST)
    clear = map_layout.modularity(nearest, map_layout.groups_of(near))
    return _Candidate(hits, near, clear * len(hits) / graph_map.MOST)


def _least_similar(index: Index, found: Mapping[str, _Candidate]) -> list[str]:
    taken: list[str] = []
    nearness = dict.fromkeys(found, 0.0)
    while nearness and len(taken) < _CARDS:
        best = min(nearness, key=lambda node: (nearness[node], -found[node].clear))
        taken.append(best)
        del nearness[best]
        if nearness:
            for hit in index.related(best, len(nearness), only=list(nearness)):
                nearness[str(hit.node)] = max(nearness[str(hit.node)], hit.score)
    return taken


def _start_of(index: Index, node: str, candidate: _Candidate) -> Start:
    hits, near = candidate.hits, candidate.near
    names = [str(hit.node) for hit in hits]
    blank = [""] * len(hits)
    spots = graph_map.plot_map(hits, blank, near, 1, "", *weights_of(index, names))
    called = ", ".join(readable(hit.title or str(hit.node), 40) for hit in hits[:_NAMED])
    title = (index.titles_of([node]) or [""])[0] or None
    return Start(node, title, called, drawing(spots, _lines(spots, near)))


def _lines(spots: Sequence[graph_map.Spot], near: NDArray[np.float64]) -> list[graph_map.Line]:
    """Return the strongest lines, preferring those that give a node its first line."""
    joined: set[int] = set()
    first: list[graph_map.Line] = []
    rest: list[graph_map.Line] = []
    for line in reversed(graph_map.lines_of(spots, near)):
        (rest if joined.issuperset(line.ends) else first).append(line)
        joined.update(line.ends)
    return [*first, *rest][:_LINES]


def drawing(spots: Sequence[graph_map.Spot], lines: Sequence[graph_map.Line]) -> Markup:
    """Draw a small map without labels, from the positions on a large one."""
    across = (_WIDE / 2 - 8) / graph_map.OUTER
    down = (_TALL / 2 - 8) / graph_map.OUTER

    def at(x: float, y: float) -> str:
        dx, dy = x - graph_map.WIDTH / 2, y - graph_map.HEIGHT / 2
        return f"{_WIDE / 2 + across * dx:.0f} {_TALL / 2 + down * dy:.0f}"

    pieces = []
    for group in sorted({line.group for line in lines}):  # lines between groups (-1) lie below
        path = "".join(
            f"M{at(line.x1, line.y1)}L{at(line.x2, line.y2)}"
            for line in lines
            if line.group == group
        )
        hue = f' data-group="{group}"' if group >= 0 else ""
        pieces.append(f'<path{hue} d="{path}"/>')
    for group in sorted({spot.group for spot in spots}):
        pieces.append(f'<g data-group="{group}">' if group >= 0 else "<g>")
        for spot in spots:
            if spot.group == group:
                x, y = at(spot.x, spot.y).split()
                pieces.append(f'<circle cx="{x}" cy="{y}" r="{_SMALL * spot.radius:.1f}"/>')
        pieces.append("</g>")
    middle = f'<circle class="own" cx="{_WIDE // 2}" cy="{_TALL // 2}" r="4"/>'
    view = f'viewBox="0 0 {_WIDE} {_TALL}" aria-hidden="true"'
    return Markup(f"<svg {view}>{''.join(pieces)}{middle}</svg>")


async def surprise(service: Service, request: Request) -> Response:
    """Redirect to a random page, which has related pages if _DRAWS draws find such a page. If the
    index is empty, redirect to the front page.
    """
    state = PageState.of(pairs_of(request.scope["query_string"]))
    with service.serving("related", state.named) as asking:
        names = asking.index.nodes
        name = ""
        for _ in range(_DRAWS if len(names) else 0):
            name = names.name(secrets.randbelow(len(names)))
            if (await related(service, {"node": [name], "k": 1}, asking)).hits:
                break
    target = (state.for_nodes(name) if name else state).href()
    return RedirectResponse(target, 303, {"Cache-Control": "no-store"})
