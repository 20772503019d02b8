"""scikit-learn transformer: nearest neighbors of each page by its links.

    LinkNeighbors(n_neighbors=10).fit_transform(adjacency)

returns a sparse graph of each page's nearest pages, like ``KNeighborsTransformer``, from an
adjacency matrix A: A[i, j] is the weight of the link from page i to page j. Clustering, UMAP and
t-SNE accept distances (``metric="precomputed"``); spectral methods accept similarities. A
similarity is a score, and a distance is 1 - score. Because most tools require equally long lists of
distances, short lists are filled with unrelated pages, at distance 1, in the order of their ids.

Builds an index, then runs a query per page on all cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from cocite.cluster import in_order
from cocite.errors import UsageError
from cocite.extras import need
from cocite.io.ingest import ingest
from cocite.search import Index, build
from cocite.search.batch.pieces import Question

_PURPOSE = "LinkNeighbors"
_validation = need("sklearn.utils.validation", _PURPOSE, "sklearn")
_sparse = need("scipy.sparse", _PURPOSE, "sklearn")
if TYPE_CHECKING:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
else:
    _base = need("sklearn.base", _PURPOSE, "sklearn")
    BaseEstimator, TransformerMixin = _base.BaseEstimator, _base.TransformerMixin
    ClassNamePrefixFeaturesOutMixin = _base.ClassNamePrefixFeaturesOutMixin


MODES = ("distance", "connectivity", "similarity")
_SLACK = 1e-9
"""Rounding tolerance: scores are rounded to 12 decimals, so they may slightly exceed 1."""


class LinkNeighbors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transforms an adjacency matrix into a sparse graph of nearest pages.

    Parameters
    ----------
    n_neighbors
        Number of neighbors per page.
    mode
        ``"distance"``: 1 - score for ``n_neighbors`` other pages, and an explicit 0 for the page
        itself; ``"connectivity"``: 1 for the page and ``n_neighbors - 1`` others; ``"similarity"``:
        the score for at most ``n_neighbors`` others with scores above 0.
    measure, direction
        As for :func:`cocite.build`; the default measure is ``fusion``.
    settings
        Settings of the measure, such as ``{"samples": 200, "seed": 1}``. The same settings give the
        same results on any number of cores.
    n_jobs
        Number of cores; by default all.

    Attributes
    ----------
    n_features_in_, n_samples_fit_
        The number of pages.
    """

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        mode: str = "distance",
        measure: str | None = None,
        direction: str | None = None,
        settings: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.mode = mode
        self.measure = measure
        self.direction = direction
        self.settings = settings
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = True
        tags.input_tags.positive_only = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the index, which is rebuilt on demand."""
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_index", None)
        return state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Build an index of the links.

        Parameters
        ----------
        X
            Sparse or dense, [pages, pages], values of 0 or more; 0 means no link. Self-loops are
            ignored.
        y
            Ignored.

        Raises
        ------
        ValueError
            If the matrix is not square, or has negative or infinite values, or NaN.
        """
        if self.mode not in MODES:
            raise UsageError(f"mode is {self.mode!r}; it must be one of " + ", ".join(MODES))
        self._requested(self.n_neighbors)
        found = self._checked(X, reset=True)
        if found.shape[0] != found.shape[1]:
            raise UsageError(
                f"X has the shape {found.shape}; it must be square, with a row and "
                "a column per page"
            )
        self.n_samples_fit_ = self._n_features_out = found.shape[0]
        self._fit_X = found
        self._index = self._built()
        return self

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Return the nearest pages of each page.

        Parameters
        ----------
        X
            None: the fitted pages, none of which is its own neighbor. The fitted matrix: the same
            pages, each of which is its own nearest neighbor. Any other matrix, [q, pages]: the
            links from new pages to the fitted pages.
        n_neighbors
            Number of neighbors per page; by default, that of the estimator.
        return_distance
            Whether to return distances as well as indices.

        Returns
        -------
        distances
            float64[q, n_neighbors], ascending; only if requested.
        indices
            int64[q, n_neighbors].
        """
        _validation.check_is_fitted(self)
        count = self._requested(self.n_neighbors if n_neighbors is None else n_neighbors)
        itself, rows = self._queried(X)
        others = count - itself
        most = self.n_samples_fit_ - (X is None or itself)
        if others > most:
            raise UsageError(
                f"n_neighbors is {count}; with {self.n_samples_fit_} pages it must be at most "
                f"{most + itself}"
            )
        ids = np.empty((self.n_samples_fit_ if rows is None else rows.shape[0], count), np.int64)
        distances = np.zeros(ids.shape)
        for row, (own, found, scores) in enumerate(self._nearest(rows, max(1, others))):
            near, far = found[:others], _distances(scores[:others])
            missing = others - near.size
            if missing:
                near = np.concatenate((near, self._separate(near, own, missing)))
                far = np.concatenate((far, np.ones(missing)))
            if itself:
                ids[row, 0] = own
            ids[row, itself:], distances[row, itself:] = near, far
        return (distances, ids) if return_distance else ids

    def transform(self, X: Any) -> Any:
        """Return the nearest-neighbor graph.

        Parameters
        ----------
        X
            The fitted matrix, for its pages; or [q, pages], the links from new pages to the fitted
            pages. For a new page, another neighbor replaces the entry for the page itself.

        Returns
        -------
        csr_matrix
            float64[q, pages], with values according to ``mode``.
        """
        _validation.check_is_fitted(self)
        shape = self._checked(X, reset=False).shape
        if self.mode == "similarity":
            found = list(self._nearest(self._queried(X)[1], self._requested(self.n_neighbors)))
            ids, values = [near for _, near, _ in found], [scores for _, _, scores in found]
            counts = np.array([near.size for near in ids])
            columns, data = np.concatenate(ids), np.concatenate(values)
        else:
            more = self.mode == "distance"
            distances, near = self.kneighbors(X, self.n_neighbors + more)
            counts = np.full(shape[0], near.shape[1])
            columns = near.ravel()
            data = distances.ravel() if more else np.ones(near.size)
        begins = np.concatenate(([0], np.cumsum(counts)))
        return _sparse.csr_matrix((data, columns, begins), shape=(shape[0], self.n_samples_fit_))

    # -- internals ---------------------------------------------------------------------

    def _checked(self, X: Any, *, reset: bool) -> Any:
        found = _validation.validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=np.float64
        )
        found = _sparse.csr_array(found)
        found.sum_duplicates()
        found.eliminate_zeros()
        _validation.check_non_negative(found, "LinkNeighbors")
        return found

    def _built(self) -> Index:
        graph = ingest(self._fit_X, threads=self.n_jobs)
        chosen = {"measure": self.measure, "direction": self.direction, "threads": self.n_jobs}
        options: dict[str, Any] = chosen | dict(self.settings or {})
        return build(graph, **options)

    def _requested(self, count: object) -> int:
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise UsageError(f"n_neighbors is {count!r}; it must be a whole number, 1 or more")
        return int(count)

    def _queried(self, X: Any) -> tuple[int, Any]:
        """Return (whether pages are their own neighbors, rows of new pages or None)."""
        if X is None:
            return 0, None
        rows, known = self._checked(X, reset=False), self._fit_X
        same = rows.shape == known.shape and (rows != known).nnz == 0
        return (1, None) if same else (0, rows)

    def _nearest(
        self, rows: Any, count: int
    ) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.float64]]]:
        """Yield (page, or -1 for a new page; its best ``count`` other pages; their scores)."""
        if not hasattr(self, "_index"):
            self._index = self._built()
        index: Index = self._index
        if rows is not None:
            for row in range(rows.shape[0]):
                yield (-1, *self._of_new(index, rows[[row]], count))
            return
        question = Question(index, count)
        nodes = range(self.n_samples_fit_)
        workers = [question.answer] * min(index.means.threads, len(nodes))
        for node, found in enumerate(in_order(workers, nodes)):
            yield node, found.ids.astype(np.int64), np.ascontiguousarray(found.numbers[:, 0])

    def _of_new(
        self, index: Index, row: Any, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the pages nearest to a new page with the links of ``row``, and their scores."""
        if not row.nnz:
            return np.empty(0, np.int64), np.empty(0)
        weights = dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        draft = index.with_draft(weights if index.stored.weighted else list(weights))
        found = Question(draft, count).answer(self.n_samples_fit_)
        return found.ids.astype(np.int64), np.ascontiguousarray(found.numbers[:, 0])

    def _separate(self, near: NDArray[np.int64], own: int, count: int) -> NDArray[np.int64]:
        """Return the first ``count`` pages that are neither in ``near`` nor ``own``."""
        taken = {*near.tolist(), own}
        free = (page for page in range(self.n_samples_fit_) if page not in taken)
        return np.fromiter(free, np.int64, count)


def _distances(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    if scores.size and scores[0] > 1 + _SLACK:
        raise UsageError(
            f"a score is {scores[0]:g}; distances need scores from 0 to 1. Use mode='similarity', "
            "or another measure"
        )
    return np.clip(1.0 - scores, 0.0, 1.0)
