"""The two sides of a bipartite table, such as users and items.

    user, item          nodes of the graph            ids
    1, 1                "user:1" -> "1"               the left side first: 0 to left - 1,
    ann, 1              "user:ann" -> "1"             then the right side, the items

Links go from left to right, and only nodes on the same side are compared. Names on the left are
stored with a *mark*: the left side's name, followed by enough colons that no name on the right
begins with the mark. Names on the right are stored unchanged. Titles, page lists and newer graphs
refer to nodes by these stored names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.storage import Facts

SIDES = "sides"
"""Manifest key of the sides."""
DEFAULT_SIDES = ("user", "item")
_TITLE = re.compile(r"[^\W\d][\w-]{0,30}")


@dataclass(frozen=True)
class Sides:
    """Names (``titles``) and node counts of both sides, and the ``mark`` of names on the left."""

    titles: tuple[str, str]
    mark: str
    left: int
    right: int

    def to_json(self) -> dict[str, Any]:
        """Return the manifest entry."""
        return asdict(self) | {"titles": list(self.titles)}

    def subset(self, ids: NDArray[np.uint32]) -> Sides:
        """Return the sides of a graph with only the nodes ``ids``, ascending."""
        left = int(np.searchsorted(ids, self.left))
        return replace(self, left=left, right=ids.size - left)

    def title_of(self, node: int) -> str:
        """Return the name of the side that contains ``node``."""
        return self.titles[node >= self.left]

    def side_of(self, node: int) -> range:
        """Return the ids on the same side as ``node``."""
        return self.named(self.title_of(node))

    def named(self, side: str | None) -> range:
        """Return the ids of the side with this name, by default the right side. Raises
        :class:`UsageError`.
        """
        return range(self.left, self.left + self.right) if self._place(side) else range(self.left)

    def name(self, side: str | None, name: str) -> str:
        """Return the stored name of a node called ``name`` in the table. A name that already has
        the mark is unchanged.
        """
        return name if self._place(side) or name.startswith(self.mark) else self.mark + name

    def _place(self, side: str | None) -> int:
        if side is None:
            return 1
        if side not in self.titles:
            raise UsageError(f"side is {side!r}; it must be {' or '.join(self.titles)}")
        return self.titles.index(side)

    def check_alike(self, nodes: Iterable[int], names: Sequence[object]) -> None:
        """Raise :class:`UsageError` unless all nodes are on the same side."""
        found = [node < self.left for node in nodes]
        if len(set(found)) > 1:
            on_left, on_right = names[found.index(True)], names[found.index(False)]
            raise UsageError(
                f"{str(on_left)!r} is on side {self.titles[0]} and {str(on_right)!r} on side "
                f"{self.titles[1]}; only nodes on the same side can be compared"
            )

    @property
    def note(self) -> str:
        """Return the hint for errors about unknown names."""
        left, right = self.titles
        return (
            f"Names without {self.mark!r} are on the side {right!r}; "
            f"write a {left} as {self.mark}NAME, or use --side {left} (side={left})"
        )

    def in_words(self) -> str:
        """Describe both sides and their sizes."""
        (one, other), mark = self.titles, self.mark
        return f"{self.left:,} {one} ({mark}NAME), {self.right:,} {other}"


def checked_sides(bipartite: bool, titles: str | Iterable[str] | None) -> tuple[str, str] | None:
    """Return the names of the two sides, None without ``bipartite``. Raises :class:`UsageError`."""
    if titles is None:
        return DEFAULT_SIDES if bipartite else None
    each = tuple(titles.split(",") if isinstance(titles, str) else map(str, titles))
    each = tuple(title.strip() for title in each)
    if not bipartite:
        raise UsageError("sides needs a bipartite table: add --bipartite (bipartite=True)")
    if len(each) != 2 or each[0] == each[1] or not all(map(_TITLE.fullmatch, each)):
        raise UsageError(
            f"sides is {','.join(each)!r}; it must be two different words, such as user,item"
        )
    return each[0], each[1]


def refuse_undirected(what: str) -> UsageError:
    """Return the error for links whose ends cannot be assigned to sides."""
    return UsageError(
        f"the links of {what} are undirected, so their ends cannot be assigned to sides. Pass "
        "pairs or a table, with the left side first"
    )


def sides_of(facts: Facts, nodes: int) -> Sides:
    """Read the sides from a manifest. Raises :class:`~cocite.errors.Damaged`."""
    group = facts.group(SIDES)
    found = group.values.get("titles")
    titles = [t for t in found if isinstance(t, str)] if isinstance(found, list) else []
    two = found == titles and len(titles) == 2 and titles[0] != titles[1]
    if not two or not all(map(_TITLE.fullmatch, titles)):
        raise group.refused("titles", "two different words")
    mark = group.text("mark")
    if mark.rstrip(":") != titles[0] or mark == titles[0]:
        raise group.refused("mark", f"{titles[0]} and colons")
    left = group.whole("left", 0, nodes)
    sides = Sides((titles[0], titles[1]), mark, left, nodes - left)
    group.same_as(sides.to_json())
    if facts.text("names") != "text" and nodes:
        raise facts.refused("names", "text, because the graph is bipartite")
    return sides
