"""Detect a text's layout from its first lines: delimiter, header and columns.

* Delimiter: the first of tab, comma, semicolon, bar and blanks that splits all lines into the same
  number of columns, at least two; for ``.csv``, comma comes first.
* Header: the first line, if none of its cells is in the rows below and it looks like column names:
  the selected columns have well-known names; or words, and no numbers, are above columns of
  numbers; or the words lack a digit, a punctuation mark or a capital that all rows below have.
* Columns: those with well-known names for the ends of links (ignoring case and punctuation), else
  the first two. Pairs in :data:`_WAYS` distinguish source and target; those in :data:`_SIDES` do
  not.

Names with blanks look like several columns, and arrows like nodes. Both raise an error that asks
for ``--columns`` or another delimiter.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cocite.errors import InputError, UnrecognizedInput, UsageError
from cocite.io.readers.contract import DELIMITERS
from cocite.io.readers.sources import LOOK, lines_of

OTHERS = " (to choose others: --columns SOURCE,TARGET)"
"""Advice if columns were selected only by position."""


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    words = [pair.split("-") for pair in text.split()]
    return tuple((source, target) for source, target in words)


_WAYS = _pairs(
    """source-target src-dst src-dest src-target source-destination source-dest from-to
    sourceid-targetid srcid-dstid fromid-toid fromnodeid-tonodeid sourcenode-targetnode
    fromnode-tonode sourcepage-targetpage frompage-topage sourceurl-targeturl srcurl-dsturl
    fromurl-tourl sourcetitle-targettitle linksource-linktarget origin-destination origin-dest
    citing-cited citingid-citedid citingpaper-citedpaper citingpaperid-citedpaperid
    citingcorpusid-citedcorpusid
    follower-followee follower-followed followerid-followeeid followerid-followedid
    sender-receiver sender-recipient caller-callee importer-imported referrer-referred
    user-item userid-itemid user-product userid-productid customer-product customer-item
    customerid-productid userid-movieid user-movie reader-book userid-bookid
    page-linksto page-linkto page-linkedpage pageid-linksto page-target page-link pageid-target
    url-link url-target article-link article-target paper-reference document-reference
    subject-object
    quelle-ziel von-nach origen-destino fuente-destino source-cible origine-destination"""
)
"""Column names of source and target."""
_SIDES = _pairs(
    """node1-node2 page1-page2 nodea-nodeb parent-child head-tail start-end user-friend
    userid-friendid follower-following user-follows"""
)
"""Column names of two ends; the column that comes first is the source."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TITLES = frozenset(title for pair in _WAYS + _SIDES for title in pair) | _words(
    """begin cites id imports label linkedpages linkedto links name node pagetitle related seite
    title uri verlinkt verweis verweist"""
)
"""Names of link columns, in letters and digits only."""
_NUMBERS = _words("id rowid index key pk nr no number linkid edgeid")
"""Names of a first column that may only number the rows."""
_ABOUT = _words("name label title url uri")
"""Names of columns that describe a node, in a table that begins with row numbers."""

_ANSWERS = {
    ("node", "rank", "related", "score"): ("output of cocite related-all", "node,related"),
    ("rank", "node", "score", "stderr"): ("output of cocite related", ""),
    ("node", "rank"): ("output of cocite rank", ""),
    ("node", "hits"): ("output of cocite related-all", ""),
}
"""Maps a result's first column names to (description, columns to use as links)."""


def answer_in(titles: Sequence[str]) -> str:
    """Return an error text for the column names of cocite's own results, "" for others."""
    plain = [title.strip().lower() for title in titles]
    plain = [title for title in plain if title != "title"]
    for begun, (what, columns) in _ANSWERS.items():
        if tuple(plain[: len(begun)]) == begun and (len(begun) > 2 or len(plain) == 2):
            text = f"is {what}, not an edge list. Pass the graph or index that it came from"
            return text + (f"; to use its hits as links: --columns {columns}" if columns else "")
    return ""


def plain_title(title: str) -> str:
    """Return the letters and digits of a column name, in lower case."""
    return re.sub(r"[\W_]", "", title.lower())


def ends_of(titles: Sequence[str], sides: tuple[str, str] | None = None) -> tuple[int, int] | None:
    """Return the positions of source and target by name; None if missing or ambiguous.

    Columns named after the ``sides`` of a bipartite table, with or without a final ``id``, have
    priority.
    """
    plain = [plain_title(title) for title in titles]
    if sides is not None:
        left, right = (
            [i for i, title in enumerate(plain) if title in (side, f"{side}id")]
            for side in map(plain_title, sides)
        )
        if len(left) == len(right) == 1:
            return left[0], right[0]
    for (first, second), ways in [(p, True) for p in _WAYS] + [(p, False) for p in _SIDES]:
        if plain.count(first) == 1 and plain.count(second) == 1:
            source, target = plain.index(first), plain.index(second)
            return (source, target) if ways or source < target else (target, source)
    if len(plain) > 2 and plain[0] in _NUMBERS and plain[1] != plain[2]:
        return (1, 2) if {plain[1], plain[2]} <= TITLES - _NUMBERS - _ABOUT else None
    return None


class LinkColumns(NamedTuple):
    """A table's selected columns, by position: the ``ends`` of links, and the ``weight``.

    ``named`` says whether the ends were requested or have well-known names; ``unread`` is the name
    of an unselected weight column, or "".
    """

    ends: tuple[int, ...]
    weight: int | None
    named: bool
    unread: str


def choose_columns(
    label: str,
    titles: Sequence[object],
    wanted: int,
    columns: Sequence[str | int] = (),
    weight: str | int | None = None,
    sides: tuple[str, str] | None = None,
    *,
    folded: bool = False,
) -> LinkColumns:
    """Select a table's columns of links (``wanted`` is 2) or node names (1).

    Requested columns have priority, then well-known names, then the first columns. Raises
    :class:`UsageError` if a requested column is missing or selected twice, and :class:`InputError`
    if the table has too few columns.
    """
    if len(titles) < wanted:
        what = "a link needs two, source and target" if wanted == 2 else "one is needed"
        raise InputError(f"{label} has {len(titles)} columns; {what}")
    known = None if columns or wanted == 1 else ends_of(list(map(str, titles)), sides)
    ends = tuple(column_place(label, titles, each, folded=folded) for each in columns)
    ends = ends or known or tuple(range(wanted))
    at = None if weight in (None, "") else column_place(label, titles, weight, folded=folded)
    check_distinct(label, titles, ends, at)
    unread = unread_weights(titles, [titles[i] for i in ends]) if at is None and wanted == 2 else ""
    return LinkColumns(ends, at, bool(columns) or known is not None, unread)


def check_distinct(
    label: str, titles: Sequence[object], ends: Sequence[int], weight: int | None
) -> None:
    """Raise :class:`UsageError` if a column is selected twice."""
    if len({*ends, weight}) != len(ends) + 1:
        shown = " and ".join(repr(titles[i]) for i in ends)
        raise UsageError(
            f"{label}: one column is used twice. Links are read from {shown} unless you choose "
            "other columns with --columns (columns=...); weights must be in another column"
        )


def column_place(
    label: str, titles: Sequence[object], column: str | int, *, folded: bool = False
) -> int:
    """Return a column's position by name or number (from 1); raises :class:`UsageError`."""
    named: list[object] = list(titles)
    wanted: object = column
    if folded:
        named = [str(title).strip().lower() for title in titles]
        wanted = str(column).strip().lower()
    if wanted in named:
        return named.index(wanted)
    if str(column).isdecimal() and 1 <= int(column) <= len(titles):
        return int(column) - 1
    has = ", ".join(repr(str(title)) for title in titles)
    raise UsageError(f"{label} has no column {column!r}; its columns are {has}")


def unread_weights(titles: Sequence[object], taken: Sequence[object]) -> str:
    """Return the name of a weight column that is not ``taken``, or ""."""
    found = [each for each in map(str, titles) if plain_title(each) in ("weight", "weights")]
    return next((each for each in found if each not in map(str, taken)), "")


def weights_note(unread: str) -> str:
    """Return the note about an unused weight column."""
    name = unread if re.fullmatch(r"\w+", unread) else repr(unread)
    return f"; {unread!r} is ignored (as weights: --weight-column {name})" if unread else ""


def columns_note(titles: Sequence[str], weight: str, guessed: bool, unread: str = "") -> str:
    """Return a note on the selected columns, with advice if ``guessed`` or ``unread``."""
    note = f"columns {' and '.join(map(repr, titles))}"
    note += f" with the weight in {weight!r}" if weight else ""
    return note + (OTHERS if guessed else "") + weights_note(unread)


_SAMPLE_LINES = 100
_LEAST_SHAPE = 3
"""Minimum number of rows to compare with a header by shape."""


_WEIGHTS = _words(
    """weight weights w count counts n number value frequency freq times strength score amount total
    cost capacity probability similarity distance gewicht anzahl poids peso"""
)
_LABELS = _words(
    """label labels category categories class classes group groups topic topics tag tags community
    cluster subject genre type kind field section theme kategorie klasse gruppe thema categoria"""
)
"""Names of a column of labels."""
_NO_TITLES = _words("nan na null none nil inf infinity missing unknown true false")
_OPENED = re.compile(r'(?:^|[,;\t])\s*"')
"""Beginning of a quoted field."""
_CLOSED = re.compile(r"\s*(?:[,;\t]|$)")
_ARROW = re.compile(r"<?[-=~]*>|<[-=~]+|[-=]{2,}|[←→↔⇐⇒⟵⟶⟹]")
_ARROWS = re.compile(r".*\S\s+(?:<?[-=~]+>|<[-=~]+|[←→↔⇐⇒⟵⟶⟹])\s+\S.*")


def sample(head: bytes, comment: str) -> list[str]:
    """Return the first lines with data; omit the last line if it may be cut off."""
    text = head[:LOOK].decode("utf-8", "replace")
    lines = lines_of(text)
    if len(head) > LOOK and len(lines) > 1:
        lines.pop()
    marks = (comment,) if comment else ()
    held: list[str] = []
    for line in _joined(lines):
        bare = line.strip()
        if bare and not bare.startswith(marks):
            held.append(line)
            if len(held) == _SAMPLE_LINES:
                break
    return held


def _joined(lines: list[str]) -> Iterator[str]:
    """Join lines within a quoted field."""
    at = 0
    while at < len(lines):
        end, line = at + 1, lines[at]
        if '"' in line and _OPENED.search(line) and line.count('"') % 2:
            while end < min(len(lines), at + _SAMPLE_LINES) and line.count('"') % 2:
                line, end = line + "\n" + lines[end], end + 1
            if line.count('"') % 2 or not _CLOSED.match(line, line.rindex('"') + 1):
                end, line = at + 1, lines[at]
        yield line
        at = end


def fields(line: str, delimiter: str) -> list[str]:
    """Split a line into columns."""
    if delimiter == "space":
        return line.split()
    if delimiter in ("comma", "semicolon"):
        sign = DELIMITERS[delimiter]
        try:
            return next(csv.reader([line], delimiter=sign, skipinitialspace=True), [])
        except csv.Error:  # several lines, joined for another delimiter
            return line.split(sign)
    return line.split(DELIMITERS[delimiter])


def _width(line: str, delimiter: str) -> int:
    if delimiter in ("tab", "pipe"):
        return line.count(DELIMITERS[delimiter]) + 1
    return len(fields(line, delimiter))


def guess_delimiter(lines: list[str], wanted: int, comma_first: bool) -> str:
    """Guess the delimiter of an edge list (``wanted`` is 2) or of node names (1)."""
    order = ["tab", "comma", "semicolon", "pipe", "space"]
    if comma_first:
        order = ["comma", "semicolon", "tab", "pipe", "space"]
    if wanted == 1:  # one name per line; names may contain blanks
        order = order[:1] if comma_first else ["tab"]
    for delimiter in order:
        counts = {_width(line, delimiter) for line in lines}
        if len(counts) == 1 and counts.pop() >= 2:
            return delimiter
    for delimiter in order:  # irregular: reading reports the first bad row
        if lines and len(fields(lines[0], delimiter)) >= 2:
            return delimiter
    return order[0]


# -- doubts ----------------------------------------------------------------------------


def in_doubt(lines: list[str], delimiter: str) -> str:
    """Return why rows split at a guessed ``delimiter`` may not be links, with advice, or ""."""
    rows = [fields(line, delimiter) for line in lines]
    if not rows:
        return ""
    such = f"as in {lines[0].strip()[:60]!r}"
    middle = [row[1].strip() for row in rows if len(row) == 3]
    if len(middle) == len(rows) and all(map(_ARROW.fullmatch, middle)):
        back = all(arrow.startswith("<") and ">" not in arrow for arrow in middle)
        return (
            f"has arrows between its names, {such}. Choose the columns of source and target: "
            f"--columns {'3,1' if back else '1,3'}"
        )
    if delimiter != "space" and all(len(row) == 2 for row in rows):
        return ""
    if sum(bool(_ARROWS.fullmatch(line.strip())) for line in lines) * 2 > len(lines):
        return f"has arrows between its names, {such}. Replace them with tabs"
    lengths = Counter(map(len, rows))
    if delimiter == "space" and (len(rows[0]) > 2 or lengths.most_common(1)[0][0] > 2):
        least, most = min(lengths), max(lengths)
        many = f"{most}" if least == most else f"{least} to {most}"
        return (
            f"has {many} columns separated by blanks, {such}; it is unclear which are source and "
            "target. If they are the first two: --columns 1,2. If names contain blanks, put a tab "
            "between source and target"
        )
    return ""


# -- the header ------------------------------------------------------------------------


def titled_ends(
    rows: list[list[str]], header: str, sides: tuple[str, str] | None = None
) -> tuple[int, int] | None:
    """Return the positions of source and target by the column names in the first row, or None;
    ``header`` is yes, no or auto.
    """
    if not rows or header == "no":
        return None
    named = ends_of(rows[0], sides)
    if named is not None and (
        header == "yes" or has_header(rows, named, None) or _of_sides(rows, named, sides)
    ):
        return named
    if len(rows) < 2 or len(rows[0]) < 3 or rows[0][0].strip():
        return None
    cells = [row[0].strip() for row in rows[1:] if row]  # an unnamed index from pandas
    return (1, 2) if cells == [str(i) for i in range(len(cells))] else None


def _of_sides(rows: list[list[str]], ends: tuple[int, int], sides: tuple[str, str] | None) -> bool:
    """Return whether ``ends`` are named after ``sides``, and no row below has these names."""
    titles = {rows[0][i].strip() for i in ends}
    if sides is None or ends_of([rows[0][i] for i in ends], sides) != (0, 1):
        return False
    wanted = {plain_title(side) for side in sides}
    named = {plain_title(title).removesuffix("id") for title in titles}
    below = {row[i].strip() for row in rows[1:] for i in ends if len(row) > i}
    return named <= wanted | {side.removesuffix("id") for side in wanted} and not titles & below


def has_header(rows: list[list[str]], taken: tuple[int, ...], weight: int | None) -> bool:
    """Return whether the first row is a header; ``taken`` are the ends of links."""
    if not rows or len(rows[0]) <= max(taken):
        return False
    first, below = [cell.strip() for cell in rows[0]], rows[1:]
    titles = [first[i] for i in taken]
    columns = [[row[i].strip() for row in below if len(row) > i] for i in range(len(first))]
    if {name for i in taken for name in columns[i]} & set(titles):
        return False  # a node may be called "source"
    numbers = [i for i, cells in enumerate(columns) if cells and all(map(_numeric, cells))]
    if any(_numeric(first[i]) for i in numbers):
        return False
    if len(first) > 1 and all(map(_known, titles)):
        return True
    above = [i for i in numbers if _worded(first[i])]
    if weight is not None and weight in above and not set(above) & set(taken):
        return plain_title(first[weight]) in _WEIGHTS
    return bool(above) or _of_another_shape(titles, [columns[i] for i in taken])


def has_label_header(rows: list[list[str]], taken: tuple[int, int]) -> bool:
    """Return whether the first row is a header; ``taken`` are name and label."""
    if not rows or len(rows[0]) <= max(taken):
        return False
    name, label = (rows[0][i].strip() for i in taken)
    below = {row[i].strip() for row in rows[1:] for i in taken if len(row) > i}
    named = _known(name) and plain_title(label) in _LABELS and not {name, label} & below
    return named or has_header(rows, taken, None)


def _known(title: str) -> bool:
    return plain_title(title) in TITLES


def _worded(cell: str) -> bool:
    """Return whether a cell may be a column name rather than a malformed number."""
    return bool(re.match(r"[^\W\d]", cell.lstrip("_"))) and cell.lower() not in _NO_TITLES


def _of_another_shape(titles: list[str], columns: list[list[str]]) -> bool:
    """Return whether all names have a digit, URL sign or capital that plain column names lack."""
    digit, address = re.compile(r"\d"), re.compile(r"[:/.?=&#@_]")
    for title, cells in zip(titles, columns, strict=True):
        if len(cells) < _LEAST_SHAPE or not re.fullmatch(r"[^\W\d_]+(?:[ -][^\W\d_]+)*", title):
            return False
        capital = title[0].islower() and all(cell[:1].isupper() for cell in cells)
        if not (capital or all(map(digit.search, cells)) or all(map(address.search, cells))):
            return False
    return True


def _numeric(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+([.,][0-9]+)?([eE][+-]?[0-9]+)?", text) is not None


def see_no_titles(clean: bytes, titles: tuple[str, ...], file: str) -> None:
    """Raise :class:`UnrecognizedInput` if a detected column name is also a node in ``clean``."""
    for title in titles:
        name = title.encode()
        first, second = name + b"\t", b"\t" + name
        if name in clean and (
            clean.startswith(first)
            or b"\n" + first in clean
            or second + b"\n" in clean
            or second + b"\t" in clean
        ):
            shown = " and ".join(map(repr, titles))
            raise UnrecognizedInput(
                f"{file}: the first row, {shown}, seems to be a header, but {title!r} is also a "
                "node in other rows. Choose --header yes (header='yes') or --header no "
                "(header='no')"
            )
