"""Why: the pages that a score comes from, of a pair, or of several nodes asked together.

Cost: that of ``query/why.py``, for each of the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cocite.errors import UsageError
from cocite.measures import AskValue, WholeSettings
from cocite.query.opened import DEFAULT_REASONS, Opened, check_number, from_the_others
from cocite.query.source import Given, find_graphs
from cocite.query.together import DEFAULT_TOGETHER, checked_together

if TYPE_CHECKING:
    from cocite.query.why import Why, WhyTogether

__all__ = ["Reasoned"]


class Reasoned(Opened):
    """An index that says why."""

    @from_the_others
    def why(
        self,
        a: object,
        b: object,
        k: int = DEFAULT_REASONS,
        *,
        graph: Given = None,
        **settings: AskValue,
    ) -> Why:
        """Why two nodes are similar: the pages that their score comes from.

        Parameters
        ----------
        a, b
            Names of nodes.
        k
            How many reasons at most, 1 or more; the others are summed up.
        graph
            The graph that the index was built from, opened or as a path, if it is not where it was
            then: the layout ``trees`` holds when walks meet and not where. Of an index that was
            refreshed, one or more of those that its samples were drawn from.
        settings
            What the measure takes when asking, such as ``decay=0.6`` (``cocite measures``).

        Returns
        -------
        Why
            The ``score``, as :meth:`similarity` has it; its ``reasons``, by share descending, then
            by node id ascending; how many ``others`` there are, and the ``rest``, which is theirs;
            and what is ``unplaced``, as its samples' graph is not given.

        Raises
        ------
        UnknownNode
            If no node has the name.
        UsageError
            For a value that is not allowed, or a graph that is not the index's.
        NotAStore
            If the graph is needed and not found.
        Damaged
            If graph and index do not fit together after all.
        """
        check_number("k", k, 1)
        asked, pair = self._asked(settings), self._pair_of(a, b)
        return self._explained(pair, k, asked, graph)

    @from_the_others
    def why_together(
        self,
        nodes: Sequence[object],
        b: object,
        k: int = DEFAULT_REASONS,
        *,
        together: str = DEFAULT_TOGETHER,
        graph: Given = None,
        **settings: AskValue,
    ) -> WhyTogether:
        """Why a node is related to several that are asked together: what each of them adds, and
        the pages that this comes from.

        Parameters
        ----------
        nodes
            Names of nodes, asked together; each counts once.
        b
            The name of another node.
        k
            How many reasons at most, for each of ``nodes``.
        together
            ``mean`` or ``least``, as in :meth:`related`.
        graph, settings
            As in :meth:`why`.

        Returns
        -------
        WhyTogether
            The ``score``, as :meth:`related` has it, and ``pages``: for each of ``nodes``, in their
            order, its own score, its share of the score, and why. The shares of ``mean`` are equal
            parts of the scores; of ``least`` all is the share of the one that scores least.

        Raises
        ------
        UnknownNode, UsageError, NotAStore, Damaged
            As :meth:`why`; :class:`UsageError` also if ``b`` is one of ``nodes``.
        """
        from cocite.query.why import PageWhy, WhyTogether

        check_number("k", k, 1)
        checked_together(together)
        asked, ids, other = self._asked(settings), self._ids_of(list(nodes)), self.nodes.id(b)
        if other in ids:
            raise UsageError(f"{b!r} is asked itself, so it is no hit; name another node last")
        if self.nodes.sides is not None:
            self.nodes.sides.check_alike((*ids, other), (*nodes, b))
        score, scores, shares = self.shares(ids, other, together, asked)
        pages = [
            PageWhy(self.nodes.name(a), own, share, self._explained((a, other), k, asked, graph))
            for a, own, share in zip(ids, scores, shares, strict=True)
        ]
        return WhyTogether(score, pages)

    def _explained(self, pair: tuple[int, int], k: int, asked: WholeSettings, graph: Given) -> Why:
        from cocite.query.why import explained

        (score,), _ = self._estimate(*pair, asked)
        return explained(
            self._stored,
            self.reading(asked),
            pair,
            score,
            int(k),
            asked,
            find_graphs(self._stored, self.means, self._graph if graph is None else graph),
        )
