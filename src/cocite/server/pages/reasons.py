"""Explain a hit in sentences, based on the links used and on known paths
(``search/explainer.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from cocite.options import NO_LINKS
from cocite.search.explainer import PageWhy, Reason
from cocite.search.results import WhyDocument
from cocite.server.pages.view import PageState, digits_of

_LEADING = ("xjaccard", "pagesim")
"""Measures whose reasons lead to both pages, or are led to by both, along unknown paths."""
_HOW = {
    "in": ("links to both", "leads to both in {} links"),
    "out": ("is linked to by both", "is led to by both in {} links"),
}
_EITHER = "is linked with both", "leads to both in {} links, in either direction"
"""Descriptions of a page one link, or several, away from both pages."""
Said = list[str | dict[str, Any]]
"""A sentence: texts and page names."""
_NEAR: Said = ["is near both"]


Linked = Callable[[str, str], tuple[bool, bool]]
"""Returns whether a page links to another, and vice versa."""
_ROW, _BOX = 46, 38
"""Row distance and box height in the diagram, in pixels, as in ``page.css``."""
_HALF, _WIDE = 22, 44
"""Half and full distance between spine and boxes, in pixels."""
_REST: dict[str, Any] = dict.fromkeys(("name", "own", "said", "path"))
_REST |= {"near": (False, False), "others": 0}
"""The default values of a row."""
_OWN = {
    (True, True): "Linked both ways",
    (True, False): "Linked from it",
    (False, True): "Links to it",
    (False, False): "Near each other",
}
"""Texts for a pair, by whether the first page links to the second, and vice versa."""


def reasons_of(document: WhyDocument, state: PageState, linked: Linked) -> dict[str, Any]:
    """Return template values with the reasons for a hit, for each query page."""
    titles = document.titles or {}

    def called(name: str) -> dict[str, Any]:
        return {"name": name, "title": titles.get(name)}

    def part(page: PageWhy) -> dict[str, Any]:
        why, pair = page.why, (called(page.node), called(document.b))
        digits, several = digits_of(why.score), why.others > 0
        values = [reason.contribution for reason in why.reasons]
        shares = percentages([*values, *[why.remaining] * several], why.unattributed)
        ends = (page.node, document.b)
        between = linked(*ends)
        rows: list[dict[str, Any]] = []
        for reason, share in zip(why.reasons, shares, strict=False):
            page_of = reason.links != NO_LINKS
            own = reason.node in ends and not reason.path_a and not reason.steps
            said = said_of(reason, *pair, document.measure)
            sides = [between if own else linked(reason.node, end) for end in ends]
            if said == _NEAR and not own:
                said = [_near(*sides)]
            plain = not page_of or reason.steps == 1
            rows.append(
                _REST
                | {
                    **(called(reason.node) if page_of else {"name": reason.node, "title": None}),
                    "href": state.for_nodes(reason.node).href() if page_of else None,
                    "contribution": f"{reason.contribution:.{digits}f}",
                    "percent": share,
                    "near": [not plain and not any(each) for each in sides],
                    "own": _OWN[between] if own else None,
                    "samples": reason.samples,
                    "said": said,
                    "path": _path(reason, called, state),
                }
            )
        if several:
            rows.append(_REST | {"others": why.others, "percent": shares[-1]})
            values.append(why.remaining)
        shapes = ribbons([each / (why.score or 1.0) for each in values])
        return {
            "asked": pair[0],
            "score": f"{why.score:.{digits}f}",
            "contribution": f"{page.contribution:.{digits}f}" if document.aggregate else None,
            "rows": [row | shape for row, shape in zip(rows, shapes, strict=True)],
            "dashed": any(any(row["near"]) for row in rows),
            "wide": _WIDE,
            "tall": _ROW * len(rows) - (_ROW - _BOX),
            "unattributed": f"{why.unattributed:.{digits}f}" if why.unattributed > 0 else None,
        }

    parts = [part(page) for page in document.pages]
    return {"other": called(document.b), "parts": parts, "several": len(parts) > 1}


def ribbons(shares: Sequence[float]) -> list[dict[str, str]]:
    """Return SVG paths of each ribbon's outline and middle, from a share of the bar to a box."""
    tall, top, found = _ROW * len(shares) - (_ROW - _BOX), 0.0, []
    for place, share in enumerate(shares):
        bottom, middle = top + share * tall, place * _ROW + _BOX / 2
        half = min(bottom - top, _BOX) / 2
        a, b, c, d = (round(each, 1) for each in (top, bottom, middle - half, middle + half))
        line = f"M0 {(a + b) / 2:g}C{_HALF} {(a + b) / 2:g} {_HALF} {middle:g} {_WIDE} {middle:g}"
        outline = f"M0 {a:g}C{_HALF} {a:g} {_HALF} {c:g} {_WIDE} {c:g}V{d:g}"
        outline += f"C{_HALF} {d:g} {_HALF} {b:g} 0 {b:g}Z"
        found.append({"outline": outline, "line": line})
        top = bottom
    return found


def said_of(reason: Reason, a: dict[str, Any], b: dict[str, Any], measure: str) -> Said:
    """Describe how the reason is related to both pages."""
    links, steps = reason.links, reason.steps
    forth, back = reason.path_a, reason.path_b
    if links == NO_LINKS:
        return ["a word in both texts"]
    if steps:
        return [_HOW.get(links, _EITHER)[steps > 1].format(steps)]
    if len(back) == 2:  # the last step of a walk from a
        ways = {"out": "links to ", "in": "is linked to by "}
        last: Said = [ways.get(links, "is linked with "), b]
        return last if forth else ["is near ", a, ", and ", *last]
    if measure in _LEADING and links in _HOW:
        if forth or back:
            other = b if forth else a
            return ["leads to ", other] if links == "in" else ["is led to by ", other]
        return ["leads to both" if links == "in" else "is led to by both"]
    if measure == "companion" and links == "in":
        return ["is near ", a, ", and links to ", b]
    return list(_NEAR)


def _near(a: tuple[bool, bool], b: tuple[bool, bool]) -> str:
    """Describe a nearby page, by whether it links to each of two pages, and vice versa."""
    if a[0] and b[0]:
        return "links to both"
    if a[1] and b[1]:
        return "is linked to by both"
    return "is linked with both" if any(a) and any(b) else str(_NEAR[0])


def percentages(parts: Sequence[float], beside: float = 0.0) -> list[str]:
    """Round parts to percentages that add up to 100 with ``beside``, by largest remainders; 0
    becomes "under 1".
    """
    every = [*parts, beside]
    whole = sum(every) or 1.0
    exact = [100 * part / whole for part in every]
    found = [math.floor(each) for each in exact]
    order = sorted(range(len(every)), key=lambda place: (found[place] - exact[place], place))
    for place in order[: round(100 - sum(found)) if sum(every) > 0 else 0]:
        found[place] += 1
    shown = zip(found, parts, strict=False)
    return ["under 1" if value == 0 and part > 0 else f"{value}" for value, part in shown]


def _path(reason: Reason, called: Any, state: PageState) -> list[dict[str, Any]]:
    """Return the path from a through the page to b, with arrows; [] for paths of one link."""
    from_a, from_b = reason.path_a, reason.path_b
    if not reason.steps or reason.steps < 2:
        return []
    steps, turn = [*from_a, *reversed(from_b[:-1])], len(from_a) - 1
    forth, back = {"in": ("←", "→"), "out": ("→", "←")}.get(reason.links, ("–", "–"))
    return [
        {
            **called(name),
            "arrow": "" if place == 0 else forth if place <= turn else back,
            "href": state.for_nodes(name).href(),
            "middle": place == turn,
        }
        for place, name in enumerate(steps)
    ]
