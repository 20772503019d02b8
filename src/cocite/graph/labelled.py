"""Names of nodes as they were given: whole numbers, tuples, whatever else names a node in Python.

A stored graph has text names, or whole numbers; either is told as text. Of a graph that was made of
objects in memory the names go out as they came in, by *labels*, which are kept with the object, and
with the indexes that are built from it, and are not stored.

    text        the names themselves
    integers    int(name)
    mapped      any hashable value; its text is str(value), and no two have the same

Cost: nothing for the first two; for the third two dictionaries with an entry a node.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged
from cocite.graph.names import Names, open_names
from cocite.graph.titles import open_titles
from cocite.store import Store

__all__ = ["INTEGERS", "LabelledNames", "Labels", "names_of", "text_of"]


def text_of(label: object) -> str:
    """The text that a label is stored as: ``str`` of it, with NumPy's scalars as Python's."""
    if isinstance(label, str):
        return str(label)
    if isinstance(label, tuple):
        inner = [repr(part) if isinstance(part, str) else text_of(part) for part in label]
        return f"({', '.join(inner)}{',' * (len(inner) == 1)})"
    return str(label.item() if isinstance(label, np.generic) else label)


class Labels:
    """What the names of a graph were: ``labels`` by their text, or whole numbers for None."""

    def __init__(self, labels: Mapping[str, Hashable] | None) -> None:
        self._labels = labels
        self._texts = {} if labels is None else {label: text for text, label in labels.items()}

    def of(self, text: str) -> Any:
        """The label of a stored name; of one that came later, as that of a draft, itself."""
        if self._labels is not None:
            return self._labels.get(text, text)
        return int(text) if text.isdecimal() else text

    def text(self, label: object) -> str:
        """The stored name that a label may have; a text is one already."""
        if self._labels is None or isinstance(label, str):
            return text_of(label)
        try:
            return self._texts.get(label, text_of(label))
        except TypeError:  # not hashable
            return text_of(label)

    def has(self, value: object) -> bool:
        """Whether a tuple is one label, and not several."""
        try:
            return value in self._texts
        except TypeError:
            return False


INTEGERS = Labels(None)
"""Of names that were whole numbers."""


def names_of(store: Store) -> Names:
    """The names that a store holds, by its labels if it has any."""
    names = open_names(store)
    if isinstance(store.labels, Labels):
        names = LabelledNames(names, store.labels)
    names.titles = partial(open_titles, store, len(names))
    return names


class LabelledNames(Names):
    """Stored names, told by their labels. What is looked for by text is found by the text."""

    def __init__(self, names: Names, labels: Labels) -> None:
        super().__init__(len(names))
        self._stored, self.labels, self.sides = names, labels, names.sides

    @property
    def stored(self) -> Names:
        """The names as text, as they are stored."""
        return self._stored

    @property
    def note(self) -> str:
        """What is to be said of a name that is not there."""
        return self._stored.note

    @note.setter
    def note(self, note: str) -> None:
        self._stored.note = note

    def names(self, ids: NDArray[Any]) -> list[Any]:
        """The labels of ``ids``, in their order."""
        return list(map(self.labels.of, self._stored.names(ids)))

    def find(self, name: object) -> int | None:
        """The id of a label, or of a stored name; None if no node has it."""
        return self._stored.find(self.labels.text(name))

    def found(self, names: Sequence[object] | NDArray[Any]) -> NDArray[np.int64]:
        """The ids of many labels, or stored names; -1 for those that no node has."""
        whole = isinstance(names, np.ndarray) and self.labels is INTEGERS
        return self._stored.found(names if whole else list(map(self.labels.text, names)))

    def see_that_none_is(self, name: str) -> None:
        """See that no stored name is so."""
        self._stored.see_that_none_is(name)

    def damaged(self) -> Damaged:
        """What is to be said of stored names that cannot be as they are."""
        return self._stored.damaged()

    def __contains__(self, name: object) -> bool:
        return self.find(name) is not None

    def id(self, name: object) -> int:
        """The id of a label; raises :class:`UnknownNode` with the nearest stored names."""
        found = self.find(name)
        if found is None:
            raise self.unknown(name, self.labels.text(name))
        return found

    def is_one(self, value: object) -> bool:
        """Whether a tuple names one node."""
        return self.labels.has(value)

    def containing(self, text: str, *, plain: bool = False) -> NDArray[np.uint32]:
        """The ids of all stored names that contain ``text``."""
        return self._stored.containing(text, plain=plain)

    def nearest(self, name: str, limit: int = 5, *, quick: bool = False) -> list[str]:
        """Stored names that ``name`` may have meant."""
        return self._stored.nearest(name, limit, quick=quick)

    def with_prefix(self, prefix: str) -> NDArray[np.uint32]:
        """The ids of all stored names that begin with ``prefix``, ascending."""
        return self._stored.with_prefix(prefix)

    def forget(self) -> None:
        """Give back the memory of the files."""
        self._stored.forget()

    def _first_with_prefix(self, prefix: str, limit: int, but: str | None = None) -> NDArray[Any]:
        return self._stored._first_with_prefix(prefix, limit, but)

    def _similar(self, name: str, limit: int) -> list[str]:
        return self._stored._similar(name, limit)
