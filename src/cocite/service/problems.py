"""Errors as problem details (RFC 9457), in the wording of the command line.

A problem has a status, a ``type`` that names its kind (a place in the server's own reference), a
``title`` and a ``detail``. Of what goes wrong inside, only the log knows more: places on the
server's disk are called by the names under which indexes are served.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import Any

import msgspec

from cocite.errors import CociteError, NotAStore, TookTooLong, UnknownNode, UsageError
from cocite.service.parameters import TooMany

__all__ = ["KINDS", "MEDIA", "Problem", "Refused", "Scrub", "problem_of"]

MEDIA = "application/problem+json"
KINDS = {
    "bad-json": (400, "The body is no JSON"),
    "no-key": (401, "A key is needed"),
    "unknown-node": (404, "No node has this name"),
    "unknown-index": (404, "No index has this name"),
    "not-found": (404, "Nothing is here"),
    "no-such-method": (405, "This is not asked like that"),
    "not-acceptable": (406, "This is not given in that form"),
    "unknown-host": (421, "The server is not called so"),
    "slow-body": (408, "The body took too long"),
    "body-too-large": (413, "The body is too large"),
    "too-many": (413, "Too much is asked for at once"),
    "url-too-long": (414, "The address is too long"),
    "no-json": (415, "The body is to be JSON"),
    "not-allowed": (422, "A value is not allowed"),
    "graph-needed": (422, "The graph is needed, and is not here"),
    "busy": (429, "The server has too much to do"),
    "fault": (500, "The server failed"),
    "took-too-long": (503, "The answer took too long"),
}
"""Kind -> its status and title."""


@dataclass(frozen=True)
class Problem:
    """What is wrong: ``kind`` is one of ``KINDS``; ``more`` are facts beside it."""

    kind: str
    detail: str
    more: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """Its HTTP status."""
        return KINDS[self.kind][0]

    def to_json(self) -> dict[str, Any]:
        """As RFC 9457 has it."""
        status, title = KINDS[self.kind]
        told = {"type": f"/docs#{self.kind}", "title": title, "status": status}
        return told | {"detail": self.detail} | self.more

    @cached_property
    def body(self) -> bytes:
        """The same, encoded."""
        return msgspec.json.encode(self.to_json())

    @cached_property
    def raw_headers(self) -> tuple[tuple[bytes, bytes], ...]:
        """Its headers, encoded: what is told again and again is made once."""
        told = {"content-type": MEDIA, "cache-control": "no-store", **self.headers}
        told["content-length"] = str(len(self.body))
        return tuple((name.lower().encode(), value.encode()) for name, value in told.items())


class Refused(Exception):
    """A request that is not answered, and why."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.detail)


class Scrub:
    """Takes places on the disk out of messages: what is served is called by its name."""

    def __init__(self, places: Iterable[tuple[str, str]]) -> None:
        """``places`` are paths, and what to call each."""
        known: dict[str, str] = {}
        for path, name in places:
            bare = () if os.path.basename(path) == path else (path,)  # which says nothing of places
            for written in (*bare, os.path.abspath(path), os.path.realpath(path)):
                known[written] = name
                folder = os.path.dirname(written)
                if len(folder) > 1:
                    known.setdefault(folder + os.sep, "")
        self._known = sorted(known.items(), key=lambda pair: -len(pair[0]))

    def __call__(self, text: str, said: Iterable[str] = ()) -> str:
        """The text without them; but what the client ``said`` itself is told as it was, as he would
        learn of a place that he guesses by its being left out.
        """
        kept: dict[str, str] = {}
        for each in sorted(set(said), key=len, reverse=True):
            if any(path in each for path, _ in self._known):
                for form in (repr(each)[1:-1], repr(each)[:100], each):
                    mark = f"\0{len(kept)}\0"
                    kept[mark], text = form, text.replace(form, mark)
        for path, name in self._known:
            text = text.replace(path, name)
        for mark, form in reversed(kept.items()):
            text = text.replace(mark, form)
        return text


def problem_of(error: CociteError, scrub: Scrub, said: Iterable[str] = ()) -> Problem:
    """What is wrong, of an error that cocite raises on purpose, to a client who ``said`` this."""
    detail = scrub(str(error), said)
    if isinstance(error, UnknownNode):
        return Problem("unknown-node", detail, {"nearest": list(error.nearest)})
    if isinstance(error, TooMany):
        return Problem("too-many", detail)
    if isinstance(error, UsageError):
        return Problem("not-allowed", detail)
    if isinstance(error, TookTooLong):
        return Problem("took-too-long", detail)
    if isinstance(error, NotAStore):
        return Problem(
            "graph-needed",
            "this question reads the graph that the index was made of, which the server does not "
            "have: ask without it, or have the server started with --graph",
        )
    phrase = HTTPStatus(500).phrase.lower()
    return Problem("fault", f"{phrase}: the server's log says more")
