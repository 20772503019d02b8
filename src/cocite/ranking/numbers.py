"""Base class of results with one or more numbers per node."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cocite.graph.convert import names_as_they_are, names_of_one_type
from cocite.graph.names import Names
from cocite.results import NodeTable

if TYPE_CHECKING:
    from cocite.io.writers import Target, Types


class NodeNumbers(NodeTable):
    """A table of nodes and their numbers, by id. ``result["name"]`` has the numbers of a node."""

    names: Names
    _arrays = True
    _named = ("node",)

    @abstractmethod
    def _numbers(self) -> dict[str, Any]:
        """Return the columns of numbers by name, each float64[nodes]."""

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: object) -> Any:
        """Return the number of the node called ``name``, or a tuple of its numbers. Raises
        :class:`~cocite.errors.UnknownNode`.
        """
        node = self.names.id(name)
        found = tuple(float(values[node]) for values in self._numbers().values())
        return found[0] if len(found) == 1 else found

    def _columns(self) -> dict[str, Any]:
        return {"node": names_as_they_are(self.names)} | self._numbers()

    def _plain(self) -> dict[str, Any]:
        return {"node": names_of_one_type(self.names)} | self._numbers()

    def _types(self) -> Types:
        from cocite.io.writers import numbers_types

        return numbers_types(*self._numbers())

    def _write(self, target: Target) -> None:
        from cocite.io.writers import write_numbers

        write_numbers(target, self.names, **self._numbers())
