"""What was done to a folder of pages, as a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cocite.results import Document


@dataclass(frozen=True)
class SiteDocument(Document):
    """What :mod:`cocite.integrations.site_folder` did, or would do in a ``dry_run``.

    ``listed`` pages have a list now, with ``links_listed`` links in all, at these ``places``;
    ``written`` pages changed. ``hubs`` are linked with too many pages to be related to any.
    ``left_alone`` says of pages why they were not touched. ``restored`` pages lost their lists and
    are what they were before the first one; ``edited`` ones lost them and have changed since.
    ``shown`` is the change of ``shown_page``, and ``output`` a folder of JSON.
    """

    folder: str
    dry_run: bool
    pages: int
    listed: int
    links_listed: int
    written: int = 0
    places: Mapping[str, int] = field(default_factory=dict)
    hubs: Sequence[str] = ()
    left_alone: Mapping[str, str] = field(default_factory=dict)
    restored: int = 0
    edited: Sequence[str] = ()
    shown_page: str | None = None
    shown: str | None = None
    output: str | None = None
