"""The output of ``cocite measures``: each measure with its layouts, memory and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from cocite.measures import MEASURES, find_measure
from cocite.measures.evidence import FLOORS
from cocite.measures.measure import Measure
from cocite.measures.settings import Setting
from cocite.options import Value
from cocite.results import Document, ResultRows


@dataclass(frozen=True)
class MeasuresDocument(Document):
    """All measures in table order, or the named ones in the given order."""

    measures: Sequence[Measure]

    @classmethod
    def of(cls, *names: str) -> Self:
        """Return all measures, or those named; raises :class:`UsageError`."""
        return cls(tuple(map(find_measure, names)) or tuple(MEASURES.values()))

    def facts(self) -> dict[str, Any]:
        """Return every measure's layouts, settings and memory, as JSON values."""
        return {"measures": [_described(measure) for measure in self.measures]}

    def rows(self) -> ResultRows:
        """Return a row per measure; its cells are names separated by spaces, or a dash."""
        titles = ("measure", "layouts", "settings", "asking", "what it is")
        return ResultRows(titles, [_row(measure) for measure in self.measures])


def _described(measure: Measure) -> dict[str, Any]:
    return {
        "measure": measure.name,
        "summary": measure.summary,
        "layouts": list(measure.layouts),
        "least_memory": {layout: FLOORS[layout] for layout in measure.layouts},
        "direction": measure.direction,
        "symmetric": measure.symmetric,
        "weighted": measure.weighted,
        "settings": {
            when: [
                {"name": s.name, "default": s.default, "allowed": s.allowed, "text": s.text}
                for s in settings
            ]
            for when, settings in (("build", measure.build), ("ask", measure.ask))
        },
    }


def _row(measure: Measure) -> tuple[str, ...]:
    def names(settings: Sequence[Setting[Value]]) -> str:
        return " ".join(setting.name for setting in settings) or "-"

    layouts = " ".join(measure.layouts)
    return measure.name, layouts, names(measure.build), names(measure.ask), measure.summary
