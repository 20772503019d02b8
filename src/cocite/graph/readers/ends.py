"""Which columns hold the ends of links, by their titles: ``id,source,target`` has them second and
third, and so has ``id,page,reference``: a first column that tells rows apart is none of two others
whose titles are those of ends.

Titles are compared by their letters and digits alone, in any case. A pair of :data:`_WAYS` says
which end is which, so that ``target,source`` is read backwards; one of :data:`_SIDES` does not, and
its columns are taken as they stand. Of several pairs the first of the tables is taken. A first
column without a title, whose cells are 0, 1, 2, ..., is the index that pandas writes.

The titles of a bipartite table may be those of its sides: ``item,user`` is read backwards.

Cost: that of a few comparisons; nothing but the first lines is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["OTHERS", "TITLES", "answer_in", "ends_of", "plain_title", "without_index"]


OTHERS = " (if others are: --columns SOURCE,TARGET)"
"""What is said where nothing but their places tells which columns are the link."""


def _pairs(text: str) -> tuple[tuple[str, str], ...]:
    words = [pair.split("-") for pair in text.split()]
    return tuple((source, target) for source, target in words)


_WAYS = _pairs(
    """source-target src-dst src-dest src-target source-destination source-dest from-to
    sourceid-targetid srcid-dstid fromid-toid fromnodeid-tonodeid sourcenode-targetnode
    fromnode-tonode sourcepage-targetpage frompage-topage sourceurl-targeturl srcurl-dsturl
    fromurl-tourl sourcetitle-targettitle linksource-linktarget origin-destination origin-dest
    citing-cited citingid-citedid citingpaper-citedpaper citingpaperid-citedpaperid
    follower-followee follower-followed followerid-followeeid followerid-followedid
    sender-receiver sender-recipient caller-callee importer-imported referrer-referred
    user-item userid-itemid user-product userid-productid customer-product customer-item
    customerid-productid userid-movieid user-movie reader-book userid-bookid
    page-linksto page-linkto page-linkedpage pageid-linksto page-target page-link pageid-target
    url-link url-target article-link article-target paper-reference document-reference
    subject-object
    quelle-ziel von-nach origen-destino fuente-destino source-cible origine-destination"""
)
"""Titles of source and target."""
_SIDES = _pairs(
    """node1-node2 page1-page2 nodea-nodeb parent-child head-tail start-end user-friend
    userid-friendid follower-following user-follows"""
)
"""Titles of two ends of which it is not clear, or does not matter, which is which."""


TITLES = frozenset(
    [
        "source",
        "target",
        "src",
        "dst",
        "dest",
        "destination",
        "from",
        "to",
        "origin",
        "start",
        "end",
        "begin",
        "head",
        "tail",
        "citing",
        "cited",
        "cites",
        "reference",
        "node",
        "node1",
        "node2",
        "id",
        "name",
        "label",
        "page",
        "pageid",
        "url",
        "uri",
        "link",
        "links",
        "linksto",
        "linkto",
        "linkedto",
        "linkedpage",
        "linkedpages",
        "title",
        "article",
        "related",
        "document",
        "linksource",
        "linktarget",
        "fromnodeid",
        "tonodeid",
        "fromid",
        "toid",
        "fromnode",
        "tonode",
        "frompage",
        "topage",
        "fromurl",
        "tourl",
        "sourceid",
        "targetid",
        "sourcenode",
        "targetnode",
        "sourcepage",
        "targetpage",
        "sourceurl",
        "targeturl",
        "sourcetitle",
        "targettitle",
        "pagetitle",
        "srcid",
        "dstid",
        "srcurl",
        "dsturl",
        "follower",
        "followee",
        "follows",
        "following",
        "followed",
        "parent",
        "child",
        "sender",
        "receiver",
        "recipient",
        "caller",
        "callee",
        "importer",
        "imported",
        "imports",
        "subject",
        "object",
        "user",
        "friend",
        "product",
        "item",
        "customer",
        "userid",
        "itemid",
        "customerid",
        "productid",
        "quelle",
        "ziel",
        "von",
        "nach",
        "seite",
        "verweis",
        "verweist",
        "verlinkt",
        "origen",
        "destino",
        "fuente",
        "origine",
        "cible",
    ]
)
"""Titles of the columns of a link, letters and digits only."""
_NUMBERS = frozenset(
    ["id", "rowid", "index", "key", "pk", "nr", "no", "number", "linkid", "edgeid"]
)
"""Titles of a first column that may only tell rows apart."""
_ABOUT = frozenset(["name", "label", "title", "url", "uri"])
"""Titles of what is said of the node in such a column."""

_ANSWERS = {
    ("node", "rank", "related", "score"): (
        "what cocite related-all wrote",
        "node,related",
    ),
    ("rank", "node", "score", "stderr"): ("what cocite related wrote", ""),
    ("node", "rank"): ("what cocite rank wrote", ""),
    ("node", "hits"): ("what cocite related-all wrote", ""),
}
"""Titles that tables of answers begin with -> what they are, and which columns could be links."""


def answer_in(titles: Sequence[str]) -> str:
    """Why a table with these titles is no list of links, but an answer of ours, and what to do; ""
    if it is none.
    """
    plain = [title.strip().lower() for title in titles]
    plain = [title for title in plain if title != "title"]
    for begun, (what, columns) in _ANSWERS.items():
        if tuple(plain[: len(begun)]) == begun and (len(begun) > 2 or len(plain) == 2):
            told = f"is {what}, and no list of links. Ask what it was made of in its place"
            return told + (f"; to take its hits as links: --columns {columns}" if columns else "")
    return ""


def plain_title(title: str) -> str:
    """The letters and digits of a title, in small letters."""
    return re.sub(r"[\W_]", "", title.lower())


def ends_of(titles: Sequence[str], sides: tuple[str, str] | None = None) -> tuple[int, int] | None:
    """The columns of source and target, from 0 on, as their titles name them; None if they name
    none, or one of them twice. Those that are called as the ``sides`` of a bipartite table, with
    ``id`` behind or not, go before all others.
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


def without_index(rows: Sequence[Sequence[str]]) -> tuple[int, int] | None:
    """The two columns behind an index that pandas wrote; None if the first column is none."""
    if len(rows) < 2 or len(rows[0]) < 3 or rows[0][0].strip():
        return None
    cells = [row[0].strip() for row in rows[1:] if row]
    return (1, 2) if cells == [str(i) for i in range(len(cells))] else None
