"""Names of pages to exclude, and the report on what was excluded."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from cocite.errors import UsageError
from cocite.graph.names import text_of

_log = logging.getLogger("cocite")


def checked_names(exclude: Iterable[object] | None) -> tuple[str, ...] | None:
    """Return the distinct names to exclude as text, None for None. Raises :class:`UsageError`."""
    if isinstance(exclude, str | bytes):
        raise UsageError("exclude is a single text; give a list of names")
    return None if exclude is None else tuple(dict.fromkeys(map(text_of, exclude)))


@dataclass(frozen=True)
class LeftOut:
    """Counts of excluded pages, their stored links, and names that match no page; ``example`` is
    the first such name.
    """

    nodes: int
    links: int
    unknown: int
    example: str | None

    def tell(self) -> None:
        """Log the counts."""
        if self.unknown:
            names = self.nodes + self.unknown
            _log.warning(
                f"{self.unknown:,} of {names:,} names to exclude match no page, such as "
                f"{self.example!r}"
            )
        s = "s" * (self.nodes != 1)
        _log.info(f"excluded {self.nodes:,} page{s} with {self.links:,} links")

    def to_json(self) -> dict[str, int]:
        """Return the manifest entry."""
        return {"nodes": self.nodes, "links": self.links, "unknown": self.unknown}


def nothing_left(count: int) -> UsageError:
    """Return the error for excluding all ``count`` pages."""
    return UsageError(
        f"excluding all {count:,} pages would leave an empty graph. Exclude fewer pages"
    )
