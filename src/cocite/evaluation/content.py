"""Content: are the related pages about the same things? Delta(A, T), by the words of their texts.

    cos(u, v)      cosine of the TF-IDF vectors of the texts of u and v
    Delta(A, T)    mean over pages v of the mean of cos(v, w) over the T best hits w of v by A

TF-IDF is scikit-learn's (an extra): term counts times log((1 + n) / (1 + df)) + 1, words of two or
more letters in lower case, vectors of length 1; the paper does not say which variant it took.

Convention: a hit that is not there counts as a cosine of 0, so a measure does not gain by finding
few. Pages without a text are no queries, and as hits they have a cosine of 0.

Cost: a sparse dot product a hit; about 0.1 ms for the 50 best of texts of 3000 words.
Source: Lin, King, Lyu 2006, *PageSim*, 6; Salton, Buckley 1988 for the weights.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, ResourceError
from cocite.extras import need
from cocite.graph.names import Names
from cocite.graph.readers.texts import texts_of
from cocite.memory import format_size

__all__ = ["Content", "read_texts"]

Progress = Callable[[int, int], None]


def read_texts(
    path: Path,
    names: Names,
    progress: Progress = lambda done, total: None,
    memory: int | None = None,
) -> dict[int, str]:
    """The texts of nodes, by id: :func:`~cocite.graph.readers.texts.texts_of` says which, and what
    it raises; and :class:`~cocite.errors.ResourceError` where they, and as much again for their
    words, take more than ``memory`` bytes.
    """
    found, held = dict[int, str](), 0
    for node, text in texts_of(path, names, progress):
        held += sys.getsizeof(text) - sys.getsizeof(found.get(node, ""))
        if memory is not None and 2 * held > memory:
            raise ResourceError(
                f"the texts in {path} take more than {format_size(memory)} of memory, after "
                f"{len(found):,} of them. Give more with --memory, or fewer texts"
            )
        found[node] = text
    return found


class Content:
    """TF-IDF vectors of the nodes. Safe to share between threads."""

    def __init__(self, texts: dict[int, str], nodes: int) -> None:
        """``texts`` by id. Raises :class:`~cocite.errors.UsageError` without scikit-learn, and
        :class:`~cocite.errors.InputError` for texts without words.
        """
        text = need("sklearn.feature_extraction.text", "TF-IDF")
        ids = sorted(texts)
        try:
            vectors = text.TfidfVectorizer(dtype=np.float32).fit_transform(texts[i] for i in ids)
        except ValueError as error:  # "empty vocabulary", says scikit-learn
            raise InputError(
                f"the {len(ids):,} texts have no word of two or more letters: nothing to compare"
            ) from error
        counts = np.zeros(nodes + 1, np.int64)
        counts[np.array(ids) + 1] = np.diff(vectors.indptr)
        # Rows of zeros for nodes without a text.
        self._vectors = type(vectors)(
            (vectors.data, vectors.indices, np.cumsum(counts)), shape=(nodes, vectors.shape[1])
        )
        self._has = np.zeros(nodes, bool)
        self._has[ids] = True

    @property
    def vectors(self) -> Any:
        """The vectors, a sparse matrix [nodes, words]; rows have length 1, or 0."""
        return self._vectors

    def has(self, node: int) -> bool:
        """Whether the node has a text."""
        return bool(self._has[node])

    def cosines(self, node: int, others: NDArray[np.uint32]) -> NDArray[np.float64]:
        """float64[others]: the cosine of each other node's text with the node's."""
        rows = self._vectors[others.astype(np.int64)]
        dense = np.zeros(self._vectors.shape[1], np.float32)
        own = slice(*self._vectors.indptr[[node, node + 1]])
        dense[self._vectors.indices[own]] = self._vectors.data[own]
        found: NDArray[np.float64] = np.asarray(rows @ dense, np.float64)
        return found

    def delta(self, node: int, hits: NDArray[np.uint32], depth: int) -> NDArray[np.float64]:
        """float64[depth]: the mean cosine of the best T hits for T = 1..depth; nan without text."""
        if not self.has(node):
            return np.full(depth, np.nan)
        found = np.zeros(depth)
        hits = hits[:depth]
        found[: hits.size] = self.cosines(node, hits)
        return np.cumsum(found) / np.arange(1, depth + 1)
