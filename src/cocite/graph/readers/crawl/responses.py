"""What servers answered, told apart: pages, which are parsed, redirects, other files, errors.

The same for archives, whose answers were kept, and for pages that are fetched now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cocite.graph.readers.crawl.captures import ERROR, OTHER, REDIRECT, REVISIT, Captures
from cocite.graph.readers.crawl.message import Message, body_of, is_page, page_type
from cocite.graph.readers.html.page import joined
from cocite.graph.readers.html.pages import Page, Pages
from cocite.graph.readers.reader import Job

__all__ = ["LARGEST", "REDIRECTS", "Responses"]

LARGEST = 1 << 25
"""Bytes of a page, unpacked; a larger one is left out."""
REDIRECTS = (301, 302, 303, 307, 308)


class Responses:
    """Pushes answers to ``captures``; ``left_out`` counts those that are no pages."""

    def __init__(self, job: Job, captures: Captures) -> None:
        self._job, self.captures = job, captures
        self.left_out: Counter[str] = Counter()

    def leave_out(self, url: str, why: str) -> None:
        """Count a page that is left out, and report it."""
        self.left_out[why] += 1
        self._job.report(url, why, "", "")

    def parse(self, pages: Pages, each: Iterable[Page]) -> None:
        """Push pages, which are called by URL and moment, with what is on them."""
        for parsed in pages.parsed(each):
            url, at = parsed.key
            if parsed.found is None:
                self.leave_out(url, f"page of which {parsed.why}")
            nothing = {"title": "", "same": {}, "links": []}
            self.captures.page(url, at, parsed.found or nothing)

    def page_of(
        self, message: Message, url: str, at: str, *, long: bool = False, cut: bool = False
    ) -> Page | None:
        """The page in an answer; all else is pushed or counted. ``long`` and ``cut`` say that not
        all of it is there, as it is too long, or as it was so when it was kept.
        """
        type_ = message.header.get("content-type", "")
        if self.is_no_page(message.status, message.header, url, at):
            return None
        if type_ and not page_type(type_):
            self.other(url, at)
            return None
        body = None if long else body_of(message, LARGEST)
        if body is None:
            long = long or message.header.get("content-encoding", "") == ""
            why = f"page of more than {LARGEST >> 20} MiB" if long else "page that is not decoded"
            self.leave_out(url, why)
            self.captures.capture(OTHER, url, at)
            return None
        if not is_page(type_, body):
            self.other(url, at)
            return None
        if cut:
            self.left_out["ends of pages that were cut when they were fetched"] += 1
        return Page((url, at), url, body, message.charset)

    def other(self, url: str, at: str) -> None:
        """A file that is no page."""
        self.left_out["file that is no page"] += 1
        self.captures.capture(OTHER, url, at)

    def is_no_page(self, status: int, header: dict[str, str], url: str, at: str) -> bool:
        """Whether it is a redirect or an error by its status, which is pushed then."""
        if 200 <= status < 300:
            return False
        leads = joined(header.get("location", ""), url) if header.get("location") else None
        if status in REDIRECTS and leads is not None:
            self.captures.capture(REDIRECT, url, at, leads)
        elif status == 304:
            self.captures.capture(REVISIT, url, at)
        else:
            self.left_out["error of a server, or no answer to show"] += 1
            self.captures.capture(ERROR, url, at)
        return True
