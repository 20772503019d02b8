"""Builder of the ``text`` layout.

Texts are read once, one at a time; pairs of word and count go to an unlinked file. In batches,
words are weighted, selected, normalized in float64, and rounded to float32. A refresh without texts
retains the index's rows; new pages have none.

A build takes 10 to 20 ns per letter, mostly in scikit-learn. An index needs 16 bytes per entry (a
word of a page), 8 per node, and, for each word, 16 plus the letters. A build needs 40 bytes of
memory per node, 200 per distinct word, 32 MiB for a batch, and 24 bytes per entry (in scratch files
if the entries do not fit). Source: ``measures/tfidf.py``.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.constants import NOWHERE, Bools, Ints
from cocite.errors import InputError, ResourceError
from cocite.extras import need
from cocite.graph.blocks import Links
from cocite.graph.names import Names
from cocite.index.layouts.batch_maker import ArrayFiles, WholeBuilder
from cocite.index.layouts.contract import OldTexts, TextFiles
from cocite.index.layouts.memory_plan import MemoryPlan, PartEstimate, Progress
from cocite.index.layouts.rows.build import columns_of, rows_at
from cocite.io.readers.tables import texts_of
from cocite.measures.evidence import floor_text
from cocite.measures.tfidf import MAX_DF, MIN_DF, WORDS
from cocite.resources import format_least, short_of
from cocite.storage import Entry, evict
from cocite.storage.spool import Scratch, ScratchFile

_log = logging.getLogger("cocite")
BATCH = 1 << 20
"""Number of pairs to write or weight at a time; a text with more is a single batch."""

Allow = Callable[[int, int], None]


@dataclass(frozen=True)
class Words:
    """Sorted words: concatenated UTF-8 ``letters`` uint8, and ``offsets`` uint64[words + 1]."""

    offsets: NDArray[np.uint64]
    letters: NDArray[np.uint8]

    @classmethod
    def of(cls, words: list[str]) -> Words:
        """Concatenate sorted words."""
        each = [word.encode() for word in words]
        ends = np.cumsum([0, *map(len, each)], dtype=np.uint64)
        return cls(ends, np.frombuffer(b"".join(each), np.uint8))

    def only(self, kept: Bools) -> Words:
        """Return the words marked in ``kept``."""
        sizes = self.offsets[1:].astype(np.int64) - self.offsets[:-1].astype(np.int64)
        letters = self.letters[np.repeat(kept, sizes)]
        return Words(np.cumsum([0, *sizes[kept]], dtype=np.uint64), letters)


@dataclass(frozen=True)
class WordCounts:
    """Word counts of texts.

    Text i, of node ``nodes[i]``, has the pairs uint32[:, 2] (word, count) from ``begins[i]`` to
    ``begins[i + 1]`` in ``file``. ``numbers`` maps the file's word ids to positions in ``words``.
    ``held`` is the number of texts that contain each word. Counting took ``seconds``.
    """

    nodes: Ints
    begins: Ints
    file: ScratchFile
    numbers: NDArray[np.uint32]
    words: Words
    held: Ints
    seconds: float

    def batches(self) -> Iterator[tuple[range, NDArray[np.uint32], NDArray[np.uint32]]]:
        """Yield batches of texts, with the word positions and counts of all pairs."""
        cuts = [0]
        for text, end in enumerate(self.begins[1:].tolist()):
            if end - int(self.begins[cuts[-1]]) > BATCH and text > cuts[-1]:
                cuts.append(text)
        for low, high in pairwise((*cuts, self.nodes.size)):
            begin, end = self.begins[low], self.begins[high]
            pairs = np.empty((int(end - begin), 2), np.uint32)
            self.file.read(8 * int(begin), pairs)
            yield range(low, high), self.numbers[pairs[:, 0]], pairs[:, 1]


def count_words(path: Path, names: Names, directory: Path, allow: Allow) -> WordCounts:
    """Count the words in nodes' texts, using a scratch file in ``directory``.

    ``allow`` is called regularly with the counts of distinct words and texts, to raise an error if
    there are too many. Logs a warning about texts without a node.

    Raises :class:`~cocite.errors.UsageError` if scikit-learn is missing, and
    :class:`~cocite.errors.InputError` if a text cannot be read or a node has two texts.
    """
    split = need("sklearn.feature_extraction.text", "The measure tfidf", "texts")
    words_in = split.CountVectorizer().build_analyzer()
    file, ids, start = ScratchFile(directory), dict[str, int](), time.perf_counter()
    nodes, begins, seen, written = list[int](), [0], set[int](), 0
    waiting: list[NDArray[np.uint32]] = []
    strangers = Counter[str]()

    def count_unknown(name: str) -> None:
        strangers[name if not strangers else ""] += 1

    def write() -> None:
        nonlocal written
        if waiting:
            file.write(8 * written, np.concatenate(waiting))
            written = begins[-1]
            waiting.clear()
        allow(len(ids), len(nodes))

    for node, text in texts_of(path, names, stranger=count_unknown):
        if node in seen:
            raise InputError(
                f"{path} has two texts for {names.name(node)!r}; a page can have only one"
            )
        counts = Counter(words_in(text))
        pairs = np.empty((len(counts), 2), np.uint32)
        pairs[:, 0] = [ids.setdefault(word, len(ids)) for word in counts]
        pairs[:, 1] = list(counts.values())
        seen.add(node)
        nodes.append(node)
        begins.append(begins[-1] + len(counts))
        waiting.append(pairs)
        if begins[-1] - written > BATCH:
            write()
    write()
    if strangers:
        many, first = strangers.total(), next(iter(strangers))
        subject = f"{many:,} texts in {path} are" if many > 1 else f"a text in {path} is"
        _log.warning(
            f"{subject} ignored, because the graph has no page of that name, for example {first!r}"
        )
    words = sorted(ids, key=str.encode)
    numbers = np.empty(len(words), np.uint32)
    numbers[[ids[word] for word in words]] = np.arange(len(words), dtype=np.uint32)
    found = WordCounts(
        np.array(nodes, np.int64),
        np.array(begins, np.int64),
        file,
        numbers,
        Words.of(words),
        np.zeros(len(words), np.int64),
        time.perf_counter() - start,
    )
    for _, places, _ in found.batches():
        found.held[:] += np.bincount(places, minlength=len(words))
    return found


_NODE, _WORD, _ROW = 40, 200, 24
"""Bytes per node, per distinct word, and per entry (a word of a page)."""
_BATCHES = 16 << 20
_LEAST_TURNED = 16 << 20
_PAGES = 1 << 12
"""Number of pages whose rows are written at a time."""
_ENTRY_SECONDS = 4e-7
"""Seconds to weight, select, transpose, and write one pair."""


class _Weighed(NamedTuple):
    """Rows in any order: ``place[v]`` is the row of node v, or -1."""

    rows: Links
    place: Ints
    words: Words


class TextBuilder(WholeBuilder):
    """Builds the ``text`` layout."""

    # -- the basis of a build ----------------------------------------------------------

    def _need(self, words: int) -> int:
        """Return the memory, in addition to rows, for ``words`` distinct words."""
        return _NODE * self.graph.nodes + _WORD * words + _BATCHES + _LEAST_TURNED

    def _allow(self, words: int, texts: int) -> None:
        """Raise :class:`ResourceError` if the memory is insufficient for so many words."""
        need = self._need(words)
        if need > self.means.memory:
            raise ResourceError(
                f"{texts:,} texts have {words:,} different words, which take {format_least(need)} "
                f"of memory; {short_of(self.means.memory)}{floor_text('text')}"
            )

    def _counted(self, files: TextFiles) -> WordCounts:
        """Return the texts' word counts, which all parts share."""
        if files.counted is None:
            folder = Scratch.near(self.graph.path).directory
            assert folder is not None
            files.counted = count_words(files.path, self.graph.names, folder, self._allow)
        found: WordCounts = files.counted
        self._allow(found.words.offsets.size - 1, found.nodes.size)
        return found

    def estimate(self) -> PartEstimate:
        """Estimate size, memory, and time; count the words, for the build to reuse."""
        texts, nodes, prefix = self.plan.texts, self.graph.nodes, self.plan.prefix
        seconds = 0.0
        if isinstance(texts, OldTexts):
            entries = texts.arrays(prefix, "texts.words").size
            words = texts.arrays(prefix, "words.offsets").size - 1
            letters = texts.arrays(prefix, "words.letters").size
        else:
            assert texts is not None
            counted = self._counted(texts)
            kept = self._cached(counted)
            entries = self._entries(counted, kept)
            words, letters = int(kept.sum()), counted.words.only(kept).letters.size
            seconds = counted.seconds
        need = min(self.means.memory, self._need(words) + 16 * entries)
        size = 16 * entries + 8 * (nodes + 1) + 16 * (words + 1) + letters
        return PartEstimate(size, MemoryPlan(need, 1, ()), seconds + entries * _ENTRY_SECONDS)

    # -- the work --------------------------------------------------------------------------

    def write(self, directory: Path, progress: Progress) -> dict[str, Entry]:
        """Weight the words of all pages, transpose the rows, and write both."""
        texts, nodes = self.plan.texts, self.graph.nodes
        assert texts is not None
        if isinstance(texts, OldTexts):
            made = self._old(texts)
        else:
            made = self._weighed(self._counted(texts), directory, progress)
        words = made.words.offsets.size - 1
        files = ArrayFiles(directory, self.plan.prefix)
        with files.rows_writer("texts", "words") as writer:
            for low in range(0, nodes, _PAGES):
                place = made.place[low : low + _PAGES]
                counts = np.zeros(place.size, np.uint64)
                counts[place >= 0], ids, values = rows_at(made.rows, place[place >= 0])
                writer.write(counts, ids, values)
        rows, spare = files.rows("texts", "words"), self.means.memory - self._need(words)
        holders = columns_of(rows, max(nodes, words), spare, directory)
        files.write_rows("holders", replace(holders, offsets=holders.offsets[: words + 1]))
        files.write("words.offsets", np.uint64, made.words.offsets)
        files.write("words.letters", np.uint8, made.words.letters)
        progress(nodes, nodes)
        return files.entries

    def _cached(self, counted: WordCounts) -> Bools:
        """Return bool[words]: whether a word is in neither too few nor too many texts."""
        settings, texts = self.plan.settings, counted.nodes.size
        kept = (counted.held >= settings[MIN_DF]) & (counted.held <= settings[MAX_DF] * texts)
        if not kept.any():
            raise InputError(
                f"there are no words to compare in the {texts:,} texts: no word of two or more "
                f"letters satisfies both --min-df {settings[MIN_DF]:,} and --max-df "
                f"{settings[MAX_DF]:.4g}. Lower --min-df (min_df=...) or raise --max-df "
                "(max_df=...)"
            )
        return kept

    def _entries(self, counted: WordCounts, kept: Bools) -> int:
        """Return the number of entries (words of pages)."""
        most = self.plan.settings[WORDS]
        each = (
            np.bincount(_rows_of(counted, batch)[kept[places]])
            for batch, places, _ in counted.batches()
        )
        return sum(int(np.minimum(sizes, most).sum()) for sizes in each)

    def _weighed(self, counted: WordCounts, directory: Path, progress: Progress) -> _Weighed:
        """Return the rows of all texts: each has the words with the largest weights, and norm 1."""
        kept, most = self._cached(counted), self.plan.settings[WORDS]
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
            evict(words, values)
            progress(batch.stop * (self.graph.nodes - 1) // counted.nodes.size, self.graph.nodes)
        place = np.full(self.graph.nodes, -1, np.int64)
        place[counted.nodes] = np.arange(counted.nodes.size)
        offsets = np.cumsum(np.concatenate(([0], sizes)), dtype=np.uint64)
        return _Weighed(Links(offsets, words, values), place, counted.words.only(kept))

    def _old(self, texts: OldTexts) -> _Weighed:
        get, ids = partial(texts.arrays, self.plan.prefix), texts.ids()
        place, stay = np.full(self.graph.nodes, -1, np.int64), np.flatnonzero(ids != NOWHERE)
        place[ids[stay]] = stay
        rows = Links(get("texts.offsets"), get("texts.words"), get("texts.values"))
        return _Weighed(rows, place, Words(get("words.offsets"), get("words.letters")))

    def _scratch(self, entries: int, directory: Path) -> Scratch:
        """Return scratch space for ``entries`` entries, in memory if everything fits."""
        fits = _ROW * entries + _NODE * self.graph.nodes + _BATCHES <= self.means.memory
        return Scratch(None) if fits else Scratch.near(directory)


def _rows_of(counted: WordCounts, batch: range) -> Ints:
    sizes = np.diff(counted.begins[batch.start : batch.stop + 1])
    return np.repeat(np.arange(len(batch)), sizes)
