"""Related pages for a website, used by ``cocite site`` and the Sphinx and MkDocs plug-ins.

Pages linked with more than a quarter of the site (:func:`everywhere`), such as a front page, are
excluded. Hits below ``MIN_SCORE`` are excluded, too: in the documentation of Click, Flask and
Sphinx, such hits were about other subjects.

A cache file has a digest of the links, the options and the release. When the digest changes, an
index is built and queried for every page, which takes one or two seconds for a thousand pages.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import xxhash

from cocite import __version__
from cocite.errors import UsageError

MIN_SCORE = 0.15
"""Minimum score to list with the default measure."""

_SHARE, _LEAST = 0.25, 8
_KEPT = "related-pages.json"

Links = Mapping[str, Collection[str]]
Make = Callable[[list[tuple[str, str]], str | None], Any]
"""Function that builds an index from links and a measure."""


def related_pages(
    links: Links,
    k: int,
    *,
    measure: str | None = None,
    min_score: float = MIN_SCORE,
    folder: str | os.PathLike[str] | None = None,
    index_of: Make | None = None,
) -> dict[str, list[str]]:
    """Return up to ``k`` related pages for each page, best first.

    ``links`` maps each page to the pages that its text links to; self-links, and links to pages
    that are not keys, are ignored. A list is empty if the page has no links, or is among
    :func:`everywhere`. ``folder`` caches answers between builds. ``index_of`` builds the index, by
    default in memory.

    Raises :class:`UsageError` for an unknown measure, or a ``k`` below 1.
    """
    if type(k) is not int or k < 1:
        raise UsageError(f"the number of related pages is {k!r}; it must be 1 or more")
    left_out = everywhere(links)
    pairs = sorted(
        (page, to)
        for page in links.keys() - left_out
        for to in {*links[page]} & (links.keys() - left_out - {page})
    )
    depends = json.dumps([__version__, k, measure, min_score, sorted(links), pairs])
    digest = xxhash.xxh3_128_hexdigest(depends.encode())
    kept = None if folder is None else Path(folder) / _KEPT
    found = _read(kept, digest, links)
    if found is None:
        found = {page: [] for page in links}
        if pairs:
            from cocite.io.ingest import ingest
            from cocite.search import build

            index = index_of(pairs, measure) if index_of else build(ingest(pairs), measure=measure)
            asked = sorted({page for pair in pairs for page in pair})
            lists = index.related_many(asked, k, min_score=min_score)
            found |= {p: [str(h.node) for h in hits] for p, hits in zip(asked, lists, strict=True)}
        if kept is not None:
            _write(kept, digest, found)
    return found


def everywhere(links: Links) -> set[str]:
    """Return the pages whose in- or out-degree exceeds 8 and a quarter of the site's pages."""
    least = max(_SHARE * len(links), _LEAST)
    of = {page: {*tos} & links.keys() - {page} for page, tos in links.items()}
    into = Counter(to for tos in of.values() for to in tos)
    return {page for page in links if max(len(of[page]), into[page]) > least}


def _read(kept: Path | None, digest: str, pages: Collection[str]) -> dict[str, list[str]] | None:
    """Return the cached answer; None if it is damaged or has a different digest."""
    if kept is None:
        return None
    try:
        found = json.loads(kept.read_bytes())
        related = {page: list(map(str, each)) for page, each in found["related"].items()}
        return related if found["digest"] == digest and set(related) == set(pages) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _write(kept: Path, digest: str, related: Mapping[str, list[str]]) -> None:
    """Store the answer atomically, because builds may run at the same time."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    beside = kept.with_name(f"{kept.name}.{os.getpid()}")
    beside.write_text(json.dumps({"digest": digest, "related": related}), "utf-8")
    beside.replace(kept)
