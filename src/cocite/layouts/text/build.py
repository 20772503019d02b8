"""The text layout: of every page its words and their weights, and of every word its pages.

    texts.offsets, .words, .values      of every page, its words, ascending, and their weights
    holders.offsets, .nodes, .values    of every word, the pages that have it, and its weights there
    words.offsets, .letters             the words, in the order of the alphabet, in UTF-8

Words are counted (``count.py``), weighed and cut batch by batch, and put behind each other in the
order of the texts; pages are written in order then, and words are their transpose, by the same
counting pass that turns links round. The weights of a page are divided by their length, in 64 bits,
and rounded to float32.

A refresh without texts takes what the index holds: rows of pages that are still there, as they are,
words and all. Pages that are new have none.

Size: 16 bytes for each word of a page, 8 a node, and 16 and its letters for each word.
Memory: 40 bytes a node, 200 for each different word of the texts, 32 MiB for what is done batch by
batch, and 24 bytes for each word of a page; where these do not fit they lie in scratch files.
Source: ``measures/text.py``.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.codes import NOWHERE
from cocite.errors import InputError, ResourceError
from cocite.graph.links import transpose
from cocite.graph.rows import Links
from cocite.layouts.memory_plan import MemoryPlan
from cocite.layouts.part import PartEstimate, Progress
from cocite.layouts.text.count import Counted, Words, count_words
from cocite.layouts.text.format import TextFormat
from cocite.layouts.texts import OldTexts, TextFiles
from cocite.layouts.whole import WholeBuilder
from cocite.measures.floors import told_floor
from cocite.measures.text import MAX_DF, MIN_DF, WORDS
from cocite.memory import format_least, short_of
from cocite.store import ArrayWriter, Entry, Scratch, forget

__all__ = ["TextBuilder"]

_NODE, _WORD, _ROW = 40, 200, 24
"""Bytes of a node, of a different word, and of a word of a page."""
_BATCHES = 16 << 20
_LEAST_TURNED = 16 << 20
_PIECE = 1 << 20
_ENTRY_SECONDS = 4e-7
"""To weigh a pair, cut, turn round and write it."""


class _Weighed(NamedTuple):
    """Rows in some order: row ``place[v]`` is that of node v, which has none if that is below 0."""

    rows: Links
    place: NDArray[np.int64]
    words: Words


class TextBuilder(TextFormat, WholeBuilder):
    """Of the layout ``text``."""

    # -- what a build stands on ----------------------------------------------------------

    def _need(self, words: int) -> int:
        """What is in memory beside the rows, with so many different words."""
        return _NODE * self.graph.nodes + _WORD * words + _BATCHES + _LEAST_TURNED

    def _allow(self, words: int, texts: int) -> None:
        """Raises :class:`ResourceError` if there is too little memory for these."""
        need = self._need(words)
        if need > self.means.memory:
            raise ResourceError(
                f"{texts:,} texts have {words:,} different words, which take {format_least(need)} "
                f"of memory; {short_of(self.means.memory)}{told_floor('text')}"
            )

    def _counted(self, files: TextFiles) -> Counted:
        """What was counted of the texts, once for all parts that are made of them."""
        if files.counted is None:
            folder = Scratch.beside(self.graph.path).directory
            assert folder is not None
            files.counted = count_words(files.path, self.graph.names, folder, self._allow)
        found: Counted = files.counted
        self._allow(found.words.offsets.size - 1, found.nodes.size)
        return found

    def estimate(self) -> PartEstimate:
        """Size, memory and time, that of reading included; texts are read for it, and not again
        when the index is made.
        """
        texts, nodes, prefix = self.plan.texts, self.graph.nodes, self.plan.prefix
        seconds = 0.0
        if isinstance(texts, OldTexts):
            entries = texts.arrays(prefix, "texts.words").size
            words = texts.arrays(prefix, "words.offsets").size - 1
            letters = texts.arrays(prefix, "words.letters").size
        else:
            assert texts is not None
            counted = self._counted(texts)
            kept = self._kept(counted)
            entries = self._entries(counted, kept)
            words, letters = int(kept.sum()), counted.words.only(kept).letters.size
            seconds = counted.seconds
        need = min(self.means.memory, self._need(words) + 16 * entries)
        size = 16 * entries + 8 * (nodes + 1) + 16 * (words + 1) + letters
        return PartEstimate(size, MemoryPlan(need, 1, ()), seconds + entries * _ENTRY_SECONDS)

    # -- the work --------------------------------------------------------------------------

    def write(self, directory: Path, progress: Progress) -> dict[str, Entry]:
        """Weigh the words of all pages, turn them round, and write both."""
        from cocite.kernels.links import add_counts

        texts, nodes = self.plan.texts, self.graph.nodes
        assert texts is not None
        if isinstance(texts, OldTexts):
            made = self._old(texts)
        else:
            made = self._weighed(self._counted(texts), directory, progress)
        rows = self._ordered(made, directory)
        words = made.words.offsets.size - 1
        held = np.zeros(max(nodes, words), np.uint32)
        add_counts(rows.neighbours, held)
        square = np.full(held.size + 1, rows.edges, np.uint64)
        square[: nodes + 1] = rows.offsets
        whole = Links(square, rows.neighbours, rows.weights)
        least = min(whole.nbytes + 8 * held.size, 8 * held.size + _LEAST_TURNED)
        spare = max(self.means.memory - self._need(words), least)
        holders = transpose(whole, held, spare, directory)
        assert rows.weights is not None
        assert holders.weights is not None
        files: dict[str, Entry] = {}
        for name, dtype, array in (
            ("texts.offsets", np.uint64, rows.offsets),
            ("texts.words", np.uint32, rows.neighbours),
            ("texts.values", np.float32, rows.weights),
            ("holders.offsets", np.uint64, holders.offsets[: words + 1]),
            ("holders.nodes", np.uint32, holders.neighbours),
            ("holders.values", np.float32, holders.weights),
            ("words.offsets", np.uint64, made.words.offsets),
            ("words.letters", np.uint8, made.words.letters),
        ):
            files |= self._stream(directory, name, dtype, array)
        progress(nodes, nodes)
        return files

    def _kept(self, counted: Counted) -> NDArray[np.bool_]:
        """bool[words]: which are in texts that are neither too few nor too many."""
        settings, texts = self.plan.settings, counted.nodes.size
        kept = (counted.held >= settings[MIN_DF]) & (counted.held <= settings[MAX_DF] * texts)
        if not kept.any():
            raise InputError(
                f"no word of two or more letters is in {settings[MIN_DF]:,} or more of the "
                f"{texts:,} texts, and in {settings[MAX_DF]:.4g} of them or less: nothing to "
                "compare. Choose another --min-df or --max-df"
            )
        return kept

    def _entries(self, counted: Counted, kept: NDArray[np.bool_]) -> int:
        """How many words all pages have together."""
        most = self.plan.settings[WORDS]
        each = (
            np.bincount(_rows_of(counted, batch)[kept[places]])
            for batch, places, _ in counted.batches()
        )
        return sum(int(np.minimum(sizes, most).sum()) for sizes in each)

    def _weighed(self, counted: Counted, directory: Path, progress: Progress) -> _Weighed:
        """The rows of all texts, in their order: the words that count most, of length 1."""
        kept, most = self._kept(counted), self.plan.settings[WORDS]
        number = np.cumsum(kept) - 1
        idf = 1 + np.log((1 + counted.nodes.size) / (1 + counted.held))
        total = self._entries(counted, kept)
        scratch = self._scratch(total, directory)
        words, values = scratch.zeros(total, np.uint32), scratch.zeros(total, np.float32)
        sizes, used = np.zeros(counted.nodes.size, np.int64), 0
        for batch, all_places, counts in counted.batches():
            there = kept[all_places]
            row, places = _rows_of(counted, batch)[there], all_places[there]
            weights = (1 + np.log(counts[there].astype(np.float64))) * idf[places]
            order = np.lexsort((places, -weights, row))
            begins = np.cumsum(np.concatenate(([0], np.bincount(row, minlength=len(batch)))))
            order = order[np.arange(order.size) - begins[row[order]] < most]
            order = order[np.lexsort((places[order], row[order]))]
            row, weights = row[order], weights[order]
            lengths = np.sqrt(np.bincount(row, weights * weights, len(batch)))
            words[used : used + row.size] = number[places[order]]
            values[used : used + row.size] = weights / lengths[row]
            sizes[batch.start : batch.stop] = np.bincount(row, minlength=len(batch))
            used += row.size
            forget(words, values)
            progress(batch.stop * (self.graph.nodes - 1) // counted.nodes.size, self.graph.nodes)
        place = np.full(self.graph.nodes, -1, np.int64)
        place[counted.nodes] = np.arange(counted.nodes.size)
        offsets = np.cumsum(np.concatenate(([0], sizes)), dtype=np.uint64)
        return _Weighed(Links(offsets, words, values), place, counted.words.only(kept))

    def _old(self, texts: OldTexts) -> _Weighed:
        """The rows of the index that is refreshed."""
        get, ids = partial(texts.arrays, self.plan.prefix), texts.ids()
        place, stay = np.full(self.graph.nodes, -1, np.int64), np.flatnonzero(ids != NOWHERE)
        place[ids[stay]] = stay
        rows = Links(get("texts.offsets"), get("texts.words"), get("texts.values"))
        return _Weighed(rows, place, Words(get("words.offsets"), get("words.letters")))

    def _ordered(self, made: _Weighed, directory: Path) -> Links:
        """The rows in the order of the nodes."""
        begins = made.rows.offsets.astype(np.int64)
        has = made.place >= 0
        sizes = np.where(has, np.diff(begins)[made.place], 0)
        offsets = np.cumsum(np.concatenate(([0], sizes)), dtype=np.uint64)
        total = int(offsets[-1])
        scratch = self._scratch(total, directory)
        words, values = scratch.zeros(total, np.uint32), scratch.zeros(total, np.float32)
        assert made.rows.weights is not None
        for node in np.flatnonzero(has).tolist():
            begin = int(begins[made.place[node]])
            there = slice(begin, begin + int(sizes[node]))
            here = slice(int(offsets[node]), int(offsets[node + 1]))
            words[here] = made.rows.neighbours[there]
            values[here] = made.rows.weights[there]
        return Links(offsets, words, values)

    def _scratch(self, entries: int, directory: Path) -> Scratch:
        """For rows of so many words: in memory if all that is made of them fits."""
        fits = _ROW * entries + _NODE * self.graph.nodes + _BATCHES <= self.means.memory
        return Scratch(None) if fits else Scratch.beside(directory)

    def _stream(
        self, directory: Path, name: str, dtype: DTypeLike, array: NDArray[Any]
    ) -> dict[str, Entry]:
        """Write an array in pieces, each given back if it lies in a file."""
        path = directory / (self.plan.prefix + name)
        with ArrayWriter(path, dtype) as writer:
            for low in range(0, len(array), _PIECE):
                writer.write(array[low : low + _PIECE])
                forget(array)
        return {path.name: writer.finished}


def _rows_of(counted: Counted, batch: range) -> NDArray[np.int64]:
    """Of all pairs of a batch, which text of it they are of."""
    sizes = np.diff(counted.begins[batch.start : batch.stop + 1])
    return np.repeat(np.arange(len(batch)), sizes)
