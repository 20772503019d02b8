"""Counting words: which of them each text has, how often, and how many texts have each.

Texts are read once, one at a time. What they have goes to a nameless file, as pairs of a word and
how often it stands there, text behind text; in memory are the words themselves, while they are
counted, and 24 bytes for each text. Words get numbers in the order of the alphabet.

Cost: 10 to 20 ns a letter, most of it scikit-learn's; 8 bytes of scratch for each word of a text.
Memory: 200 bytes for each different word.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError
from cocite.extras import need
from cocite.graph.names import Names
from cocite.graph.readers.texts import texts_of
from cocite.store import ScratchFile

__all__ = ["BATCH", "Counted", "Words", "count_words"]

_log = logging.getLogger("cocite")
BATCH = 1 << 20
"""Pairs that are written, or weighed, at a time; more only of a text that has more by itself."""

Allow = Callable[[int, int], None]


@dataclass(frozen=True)
class Words:
    """Words in the order of the alphabet: UTF-8 ``letters`` uint8, one behind the other, which
    begin at ``offsets`` uint64[words + 1].
    """

    offsets: NDArray[np.uint64]
    letters: NDArray[np.uint8]

    @classmethod
    def of(cls, words: list[str]) -> Words:
        """Of words in order."""
        each = [word.encode() for word in words]
        ends = np.cumsum([0, *map(len, each)], dtype=np.uint64)
        return cls(ends, np.frombuffer(b"".join(each), np.uint8))

    def only(self, kept: NDArray[np.bool_]) -> Words:
        """Those that are ``kept``."""
        sizes = self.offsets[1:].astype(np.int64) - self.offsets[:-1].astype(np.int64)
        letters = self.letters[np.repeat(kept, sizes)]
        return Words(np.cumsum([0, *sizes[kept]], dtype=np.uint64), letters)


@dataclass(frozen=True)
class Counted:
    """What was counted. Text i is that of node ``nodes[i]``, and has the pairs uint32[:, 2] (word,
    how often) from ``begins[i]`` up to ``begins[i + 1]`` of the ``file``; ``numbers`` turns what
    words are called there into their places in ``words``, and ``held`` is how many texts have each
    of these. It took so many ``seconds``.
    """

    nodes: NDArray[np.int64]
    begins: NDArray[np.int64]
    file: ScratchFile
    numbers: NDArray[np.uint32]
    words: Words
    held: NDArray[np.int64]
    seconds: float

    def batches(self) -> Iterator[tuple[range, NDArray[np.uint32], NDArray[np.uint32]]]:
        """Texts, and of all their pairs the places of the words and how often they are there."""
        cuts = [0]
        for text, end in enumerate(self.begins[1:].tolist()):
            if end - int(self.begins[cuts[-1]]) > BATCH and text > cuts[-1]:
                cuts.append(text)
        for low, high in pairwise((*cuts, self.nodes.size)):
            begin, end = self.begins[low], self.begins[high]
            pairs = np.empty((int(end - begin), 2), np.uint32)
            self.file.read(8 * int(begin), pairs)
            yield range(low, high), self.numbers[pairs[:, 0]], pairs[:, 1]


def count_words(path: Path, names: Names, directory: Path, allow: Allow) -> Counted:
    """Count the words of the texts of nodes, with a scratch file in ``directory``.

    ``allow`` is called with how many different words and texts there are, now and then and at the
    end, and raises what is to be raised if they are too many. Of texts of no node the logger
    ``cocite`` warns.

    Raises :class:`~cocite.errors.UsageError` without scikit-learn, and
    :class:`~cocite.errors.InputError` for texts that cannot be read, or two of one node.
    """
    split = need("sklearn.feature_extraction.text", "The measure text", "texts")
    words_in = split.CountVectorizer().build_analyzer()
    file, ids, start = ScratchFile(directory), dict[str, int](), time.perf_counter()
    nodes, begins, seen, written = list[int](), [0], set[int](), 0
    waiting: list[NDArray[np.uint32]] = []
    strangers = Counter[str]()

    def stranger(name: str) -> None:
        strangers[name if not strangers else ""] += 1

    def write() -> None:
        nonlocal written
        if waiting:
            file.write(8 * written, np.concatenate(waiting))
            written = begins[-1]
            waiting.clear()
        allow(len(ids), len(nodes))

    for node, text in texts_of(path, names, stranger=stranger):
        if node in seen:
            raise InputError(f"{path} has two texts of {names.name(node)!r}; a page has one")
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
        told = f"{many:,} texts of {path} are" if many > 1 else f"a text of {path} is"
        _log.warning(f"{told} of no page of the graph, such as {first!r}: left out")
    return _in_order(file, ids, nodes, begins, start)


def _in_order(
    file: ScratchFile, ids: dict[str, int], nodes: list[int], begins: list[int], start: float
) -> Counted:
    """What was counted since ``start``, its words in order."""
    words = sorted(ids, key=str.encode)
    numbers = np.empty(len(words), np.uint32)
    numbers[[ids[word] for word in words]] = np.arange(len(words), dtype=np.uint32)
    found = Counted(
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
