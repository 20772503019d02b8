"""Drafts: pages that are not in the graph yet, asked as if they had been when the index was made.

A draft is its links: the pages that it links to, ``out``, and those that link to it, ``into``. As
text it is one link a line:

    Zebra               the draft links to the page Zebra
    -> Zebra            the same; for names that begin with an arrow themselves
    <- Africa           the page Africa links to the draft
    <- Africa<TAB>2.5   the weight of a link, behind a tab; 1 by default

Empty lines are left out. A link that is named twice counts once; weights of the same link add up,
as when links are read (``io/ingest.py``). Weights are for indexes that go by them.

Cost: a copy of the links, and what it takes to draw or to make what no index holds
(``index/layouts/on_the_fly.py``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cocite.constants import added
from cocite.errors import InputError, UsageError
from cocite.graph.names import Names
from cocite.search.filters import Ordered
from cocite.search.source import find_graph
from cocite.search.stages import DEFAULT_K

if TYPE_CHECKING:
    from cocite.graph.graph import UnseenPage
    from cocite.search.hits import Hit


DRAFT = "draft"
"""The name of a draft that has none."""
LinksLike = Iterable[object] | Mapping[Any, float]
"""Names; or names with the weights of the links, as a mapping or as pairs."""
_SHOWN = 5
_ARROWS = ("->", "<-")
_log = logging.getLogger("cocite")
_LARGEST = float(np.finfo(np.float32).max)


class UnseenNode(NamedTuple):
    """The links of a draft as they were given: names, each with a weight or None."""

    out: list[tuple[str, float | None]]
    into: list[tuple[str, float | None]]

    @classmethod
    def of(cls, out: LinksLike, into: LinksLike) -> UnseenNode:
        """Raises :class:`UsageError`."""
        return cls(_links_of("out", out), _links_of("into", into))

    @classmethod
    def read(cls, text: bytes, where: str) -> UnseenNode:
        """The draft in a text; ``where`` is what to call it. Raises :class:`InputError`."""
        try:
            lines = text.decode("utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{where} is not text in UTF-8 (byte {error.start:,}); it is to hold the links of "
                "a draft, one a line"
            ) from error
        draft = cls([], [])
        for number, line in enumerate(lines, 1):
            name, tab, weight = line.removesuffix("\r").partition("\t")
            to, into = name.startswith("-> "), name.startswith("<- ")
            name = name[3:] if to or into else name
            if not name and not (tab or to or into):
                continue
            try:
                value = float(weight) if tab else None
                if not name or not (value is None or 0 < value <= _LARGEST):
                    raise ValueError
            except ValueError:
                raise InputError(
                    f"{where}:{number}: {line!r} is no link of a draft: a name, or '-> ' or '<- ' "
                    "before one; behind a tab its weight, a number above 0"
                ) from None
            (draft.into if into else draft.out).append((name, value))
        return draft

    def page(self, names: Names, *, weighted: bool, skip_unknown: bool) -> UnseenPage:
        """The page with these links among the nodes of these names.

        Raises :class:`UsageError` for names that no node has, unless they are to be skipped, for
        weights where none count, and where no link is left.
        """
        from cocite.graph.graph import UnseenPage

        given = [value for _, value in self.out + self.into if value is not None]
        if given and not weighted:
            raise UsageError(
                "the draft's links have weights, and the index goes by none: leave the weights out"
            )
        unknown = list(dict.fromkeys(name for name, _ in self.out + self.into if name not in names))
        if unknown and not skip_unknown:
            raise UsageError(_unknown(unknown, names))
        if unknown:
            _log.warning(
                "left out of the draft: links with %s that no node is, such as %r",
                f"{len(unknown):,} page{'s' * (len(unknown) > 1)}",
                unknown[0],
            )
        out, into = (_side(side, names) for side in self)
        if not out[0].size and not into[0].size:
            left = ", those left out that no node has" if unknown else ""
            raise UsageError(
                f"the draft has no link{left}: nothing is related to it. Name pages that it links "
                "to, or that link to it"
            )
        return UnseenPage(out[0], into[0], out[1], into[1])


def _links_of(what: str, links: LinksLike) -> list[tuple[str, float | None]]:
    if isinstance(links, str | bytes):
        raise UsageError(f"{what} is one text; give a list of names")
    found: list[tuple[str, float | None]] = []
    for link in links.items() if isinstance(links, Mapping) else links:
        if not isinstance(link, tuple):
            found.append((str(link), None))
            continue
        name, weight = link if len(link) == 2 else (link, None)
        if not (isinstance(weight, int | float) and 0 < weight <= _LARGEST):
            raise UsageError(f"{what} has {link!r}; a link is a name, or (name, weight above 0)")
        found.append((str(name), float(weight)))
    return found


def _side(
    links: list[tuple[str, float | None]], names: Names
) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """The ids of those that are there, ascending, and their weights."""
    weights: dict[int, float] = {}
    for name, value in links:
        node = names.find(name)
        if node is None:
            continue
        if value is None:
            weights.setdefault(node, 1.0)
        else:
            weights[node] = weights.get(node, 0.0) + value
    ids = sorted(weights)
    return np.array(ids, np.uint32), np.array([weights[node] for node in ids], np.float32)


def _unknown(unknown: list[str], names: Names) -> str:
    """What is to be said of names that no node has."""
    told = []
    for name in unknown[:_SHOWN]:
        if name.startswith(_ARROWS):
            told.append(f"{name!r} (an arrow has a blank behind it: '{name[:2]} {name[2:]}')")
            continue
        nearest = names.suggest(name, 1)
        told.append(f"{name!r}" + (f" (the nearest name is {nearest[0]!r})" if nearest else ""))
    more = f" and {len(unknown) - _SHOWN:,} more" if len(unknown) > _SHOWN else ""
    note = f" {names.note}." if names.note else ""
    return (
        f"the draft has links with {len(unknown):,} page{'s' * (len(unknown) > 1)} that no node "
        f"is: {', '.join(told)}{more}.{note} Mend the names, or leave such links out with "
        "--skip-unknown (skip_unknown=True)"
    )


class Drafting(Ordered):
    """An index that can be asked for pages which are not in its graph."""

    def with_draft(
        self,
        out: LinksLike = (),
        into: LinksLike = (),
        *,
        name: str | None = None,
        skip_unknown: bool = False,
    ) -> Self:
        """The index as if one page more had been in the graph when it was made.

        It answers all that an index does: ``related``, ``similarity``, ``why`` take the name of the
        draft. Scores without samples are those of an index of the graph with the page, those of
        samples as well, with the page as its last node. A draft has no text: where an index
        compares texts, its scores are lower by their share, and the log says so.

        Parameters
        ----------
        out
            Names of the pages that it links to; where the index goes by weights pairs of a name and
            a weight, or a mapping, if the weights are not 1.
        into
            Those of the pages that link to it.
        name
            What it is called, by default ``draft``. An URL lets ``other_sites`` know its site.
        skip_unknown
            Leave out links with pages that are not in the graph.

        Returns
        -------
        Index
            It holds the links with the page as long as it is there.

        Raises
        ------
        UsageError
            For names that no node has, or where no link is left; if a node is called ``name``; for
            an index that keeps some pages only.
        NotAStore
            If the graph is needed and not found: for all but ``cocitation``, ``coupling``, ``ppr``,
            ``proximity`` and ``companion``.
        """
        return self.drafted(UnseenNode.of(out, into), name=name, skip_unknown=skip_unknown)

    def drafted(
        self, draft: UnseenNode, *, name: str | None = None, skip_unknown: bool = False
    ) -> Self:
        """As :meth:`with_draft`, of a draft that was read."""
        index = self.now
        if index._stored.drafted:
            raise UsageError("the index has a draft already: ask the index without it")
        if index.nodes.sides is not None:
            raise UsageError(
                f"{index._stored.store.path} is bipartite, and drafts are of graphs with nodes of "
                "one kind: add the node to the table, and ask that"
            )
        from cocite.index.virtual import Drafts

        drafts = index.__dict__.get("_drafts")
        if drafts is None:
            stored, given = index._stored, index._graph
            drafts = Drafts(stored, lambda: find_graph(stored, given), index.means)
            index.__dict__["_drafts"] = drafts
        page = draft.page(index.nodes, weighted=index._stored.weighted, skip_unknown=skip_unknown)
        called = _free(DRAFT, index.nodes) if name is None else str(name)
        if called in index.nodes:
            raise UsageError(f"a node is named {called!r}: call the draft something else")
        linked = added(part.weight for part in index._stored.parts if not part.measure.texts)
        if linked < 1:
            _log.info(
                "the draft has no text: its scores are by links alone, which are %.0f%% of a score "
                "here",
                100 * linked,
            )
        return type(self)(drafts(page, called), index.means, index._graph)

    def related_to(
        self,
        out: LinksLike = (),
        into: LinksLike = (),
        k: int = DEFAULT_K,
        *,
        name: str | None = None,
        skip_unknown: bool = False,
        **options: Any,
    ) -> list[Hit]:
        """The nodes most related to a page that is not in the graph, by its links.

        Parameters
        ----------
        out, into, name, skip_unknown
            As for :meth:`with_draft`, which serves more than one question of the same page.
        k, options
            As for :meth:`related`, all but ``refine``.

        Returns
        -------
        list of Hit

        Raises
        ------
        UsageError, NotAStore
        """
        index = self.with_draft(out, into, name=name, skip_unknown=skip_unknown)
        draft = index.nodes.name(len(index.nodes) - 1)
        found: list[Hit] = index.related(draft, k, **options)  # type: ignore[attr-defined]
        return found


def _free(name: str, names: Names) -> str:
    """The name, or one like it that no node has."""
    while name in names:
        name = f"({name})"
    return name
