"""Why, as a page shows it: for each reason a sentence, its share with a bar, and the path.

    Zambezi            links to both                         57 %
    Black-footed_Cat   leads to both in 2 links               5 %
        Zebra ← Mammal ← Black-footed_Cat → South_Africa → Giraffe

What is said follows from the links that were looked at and the paths that are known
(``query/why.py``); where neither is, only that the page is near to both.
"""

from __future__ import annotations

from typing import Any

from cocite.graph.links import NO_LINKS
from cocite.query.why import Reason
from cocite.query.why_documents import WhyDocument, WhyTogetherDocument
from cocite.service.pages.address import State
from cocite.service.pages.shown import digits_of, percent

__all__ = ["reasons_of", "said_of"]

_LEADING = ("xjaccard", "pagesim")
"""Measures whose reasons lead to both, or are led to by both, on ways that are not known."""
_HOW = {
    "in": ("links to both", "leads to both in {} links"),
    "out": ("is linked to by both", "is led to by both in {} links"),
}
_EITHER = "is linked with both", "leads to both in {} links, taken either way"
"""By the links looked at: what a page is that is one link away, or so many."""
Said = list[str | dict[str, Any]]
"""A sentence: texts, and pages by their names."""


def reasons_of(document: WhyDocument | WhyTogetherDocument, state: State) -> dict[str, Any]:
    """Why a hit is there: for each page that was asked the pages that make them similar."""
    titles = document.titles or {}

    def called(name: str) -> dict[str, Any]:
        return {"name": name, "title": titles.get(name)}

    def part(why: WhyDocument, share: float | None) -> dict[str, Any]:
        score = why.score or 1.0
        digits = digits_of(why.score)
        rows = []
        for reason in why.reasons:
            page = reason.links != NO_LINKS
            rows.append(
                {
                    **(called(reason.node) if page else {"name": reason.node, "title": None}),
                    "href": state.asking(reason.node).href() if page else None,
                    "share": f"{reason.share:.{digits}f}",
                    "percent": _share(reason.share / score),
                    "bar": percent(reason.share / score),
                    "samples": reason.samples,
                    "said": said_of(reason, called(why.a), called(why.b), why.measure),
                    "path": _path(reason, called, state),
                }
            )
        return {
            "asked": called(why.a),
            "score": f"{why.score:.{digits}f}",
            "share": None if share is None else f"{share:.{digits}f}",
            "rows": rows,
            "others": why.others,
            "rest": f"{why.rest:.{digits}f}",
            "unplaced": f"{why.unplaced:.{digits}f}" if why.unplaced > 0 else None,
        }

    if isinstance(document, WhyTogetherDocument):
        parts = [part(document.of_page(page), page.share) for page in document.pages]
    else:
        parts = [part(document, None)]
    return {"other": called(document.b), "parts": parts, "several": len(parts) > 1}


def said_of(reason: Reason, a: dict[str, Any], b: dict[str, Any], measure: str) -> Said:
    """What the page is to the two, behind its name."""
    links, steps = reason.links, reason.steps
    forth, back = reason.path_a, reason.path_b
    if links == NO_LINKS:
        return ["a word of both"]
    if steps:
        return [_HOW.get(links, _EITHER)[steps > 1].format(steps)]
    if len(back) == 2:  # the last step of a walk from a
        last: Said = ["is linked with ", b]
        if links in _HOW:
            last = ["links to " if links == "out" else "is linked to by ", b]
        return last if forth else ["is near to ", a, ", and ", *last]
    if measure in _LEADING and links in _HOW:
        if forth or back:
            other = b if forth else a
            return ["leads to ", other] if links == "in" else ["is led to by ", other]
        return ["leads to both" if links == "in" else "is led to by both"]
    if measure == "companion" and links == "in":
        return ["is near to ", a, ", and links to ", b]
    return ["is near to both"]


def _share(share: float) -> str:
    """In per cent, and never none of it."""
    return "under 1" if 0 < share < 0.005 else f"{100 * share:.0f}"


def _path(reason: Reason, called: Any, state: State) -> list[dict[str, Any]]:
    """The way from a over the page to b, if it is more than one link to each: names with the arrows
    of the links between them.
    """
    from_a, from_b = reason.path_a, reason.path_b
    if not reason.steps or reason.steps < 2:
        return []
    steps, turn = [*from_a, *reversed(from_b[:-1])], len(from_a) - 1
    forth, back = {"in": ("←", "→"), "out": ("→", "←")}.get(reason.links, ("–", "–"))
    return [
        {
            **called(name),
            "arrow": "" if place == 0 else forth if place <= turn else back,
            "href": state.asking(name).href(),
            "middle": place == turn,
        }
        for place, name in enumerate(steps)
    ]
