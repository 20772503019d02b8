"""What was counted on pages, in words: links by their tags, what is no link, what is left out."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["in_words"]


def in_words(
    links: Mapping[str, int],
    others: Mapping[str, int],
    left_out: Mapping[str, int],
    between: str = "",
) -> str:
    """The end of a line for people: ``; 1,855 links between them (...), ...; left out: ...``."""
    kinds = [f"{count:,} by {tag}" for tag, count in links.items() if count]
    text = f"; {sum(links.values()):,} links{between}"
    text += f" ({', '.join(kinds)})" if len(kinds) > 1 else ""
    text += f"; {_listed(others)}" if others else ""
    return text + (f"; left out: {_listed(left_out)}" if left_out else "")


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())
