"""Works and their citations, one work per JSON value, in formats recognized by their keys.

    OpenAlex            {"id": "https://openalex.org/W1", "referenced_works": [...], "title": ...}
    Crossref            {"DOI": "10.1/A", "reference": [{"DOI": "10.1/b"}, ...], "title": ["..."]}
    Semantic Scholar    {"paperId": "1", "references": [{"paperId": "2"}, ...]}
    DBLP-Citation       {"id": "1", "references": ["2", ...], "n_citation": 3}

Dumps and services' responses contain works in ``items`` or ``results`` of one object, or one work
per line. With msgspec (``serve``), only the required members are decoded: a work of 5 kB takes
10 µs, instead of 90 µs with ``json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

WRAPPED = ("items", "results")
"""Members of an object that contain works."""
_PLAIN = re.compile(r"[^\x00-\x1f\"\\\ud800-\udfff]+")
"""Keys that msgspec supports."""
_TITLES = ("display_name", "title")


class Shape(NamedTuple):
    """Members with a work's name and citations; ``signs`` identify works without citations."""

    node: str
    cited: str
    signs: tuple[str, ...] = ()


SHAPES = (
    Shape("id", "referenced_works"),
    Shape("DOI", "reference", ("reference-count", "references-count", "is-referenced-by-count")),
    Shape("paperId", "references"),
    Shape("corpusid", "references", ("externalids",)),
    Shape("id", "outCitations"),
    Shape("id", "references", ("n_citation",)),
    Shape("_id", "references", ("n_citation",)),
)


def shape_of(keys: Sequence[str]) -> Shape | None:
    """Return the format of a work with these keys, or None."""
    for shape in SHAPES:
        if shape.node in keys and any(key in keys for key in (shape.cited, *shape.signs)):
            return shape
    return None


def title_of(value: Any) -> str:
    """Return a work's title, or "" if it has none; of several titles (Crossref), the first."""
    for key in _TITLES if isinstance(value, dict) else ():
        title = value.get(key)
        title = title[0] if isinstance(title, list) and title else title
        if isinstance(title, str):
            return title
    return ""


def spelled(key: str, name: str) -> str:
    """Return a name as spelled in a graph; DOIs, which ignore case, in lower case."""
    return name.lower() if key.lower() == "doi" else name


def decoder(keys: Sequence[str]) -> Callable[[str], Any]:
    """Return a JSON decoder that may omit members of objects, to be faster than ``json``.

    The members ``keys`` and titles are always decoded, and so are all values other than objects.
    The decoder raises ValueError for invalid JSON.
    """
    if find_spec("msgspec") is None or not all(map(_PLAIN.fullmatch, keys)):
        return json.loads
    msgspec = import_module("msgspec")
    names = list(dict.fromkeys((*keys, *_TITLES)))
    fields = [(f"m{i}", Any, msgspec.UNSET) for i, _ in enumerate(names)]
    rename = {f"m{i}": name for i, name in enumerate(names)}
    row = msgspec.defstruct("Row", fields, rename=rename, gc=False)
    decode, places = msgspec.json.Decoder(row).decode, [(f"m{i}", n) for i, n in enumerate(names)]

    def members(text: str) -> Any:
        try:
            found = decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError):
            return json.loads(text)  # other values, and clearer errors
        cells = ((name, getattr(found, field)) for field, name in places)
        return {name: cell for name, cell in cells if cell is not msgspec.UNSET}

    return members
