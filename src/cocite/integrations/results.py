"""What was done to a folder of pages, as a result."""

from __future__ import annotations

from dataclasses import dataclass

from cocite.results import Document


@dataclass(frozen=True)
class SiteDocument(Document):
    """What :func:`~cocite.integrations.site_folder.insert_lists` and ``remove_lists`` did, or would
    do in a ``dry_run``.

    ``listed`` pages have a list now, with ``links_listed`` links in all; ``changed`` of the pages
    were written, and on ``places`` the lists stand, by what is there. ``hubs`` are linked with too
    many pages to be related to any. ``left_alone`` says of pages why they were not touched.
    ``restored`` pages have the bytes that they had before the first list; ``edited`` ones had
    changed since, and lost their lists only. ``shown`` is the change of the page ``shown_page``.
    """

    folder: str
    dry_run: bool
    pages: int
    listed: int
    links_listed: int
    changed: int
    places: dict[str, int]
    hubs: tuple[str, ...]
    left_alone: dict[str, str]
    restored: int
    edited: tuple[str, ...]
    output: str | None
    shown_page: str | None
    shown: str | None
