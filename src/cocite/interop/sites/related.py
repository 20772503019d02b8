"""From the links among a site's pages to the related pages of each.

An index is built in a temporary directory and asked for every page; what it said is kept in one
file, under a digest of all it depends on: the links, the options, the release. A build of a site
whose links did not change reads that file and nothing else.

Cost: that of ingest, index and a question a page: a second or two for a thousand pages, once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path

import xxhash

from cocite import __version__
from cocite.errors import UsageError

__all__ = ["related_pages"]

_KEPT = "related-pages.json"


def related_pages(
    links: Mapping[str, Collection[str]],
    k: int,
    *,
    measure: str | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> dict[str, list[str]]:
    """The pages most related to each.

    Parameters
    ----------
    links
        For each page the pages that it links to; links to others than these, and of a page to
        itself, are left out.
    k
        How many related pages, at most; fewer where fewer have anything in common with a page.
    measure
        Of ``cocite measures``; by default that of an index.
    folder
        Where answers are kept between builds.

    Returns
    -------
    dict
        Of every page a list, best first; empty where a page has no links either way.

    Raises
    ------
    UsageError
        For a measure that is none, or a ``k`` that is not 1 or more.
    """
    if type(k) is not int or k < 1:
        raise UsageError(f"the number of related pages is {k!r}; it is 1 or more")
    pairs = sorted({(page, to) for page, tos in links.items() for to in tos if to in links} - {
        (page, page) for page in links
    })
    depends = json.dumps([__version__, k, measure, sorted(links), pairs])
    digest = xxhash.xxh3_128_hexdigest(depends.encode())
    kept = None if folder is None else Path(folder) / _KEPT
    found = _read(kept, digest, links)
    if found is None:
        found = _ask(pairs, links, k, measure)
        if kept is not None:
            _write(kept, digest, found)
    return found


def _ask(
    pairs: list[tuple[str, str]], pages: Collection[str], k: int, measure: str | None
) -> dict[str, list[str]]:
    from cocite.graph.ingest import ingest
    from cocite.query import build

    found: dict[str, list[str]] = {page: [] for page in pages}
    if not pairs:
        return found
    index = build(ingest(pairs), measure=measure)
    for page in {page for pair in pairs for page in pair}:
        found[page] = [str(hit.node) for hit in index.related(page, k=k)]
    return found


def _read(
    kept: Path | None, digest: str, pages: Collection[str]
) -> dict[str, list[str]] | None:
    """What is kept for this digest; a file that is not whole counts as none."""
    if kept is None:
        return None
    try:
        found = json.loads(kept.read_bytes())
        related = found["related"]
        if found["digest"] != digest or set(related) != set(pages):
            return None
        return {page: [str(each) for each in related[page]] for page in related}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(kept: Path, digest: str, related: Mapping[str, list[str]]) -> None:
    """Keep it; another build may do so at the same time, so that it is put there whole."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    beside = kept.with_name(f"{kept.name}.{os.getpid()}")
    beside.write_text(json.dumps({"digest": digest, "related": related}), "utf-8")
    beside.replace(kept)
