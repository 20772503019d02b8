"""The links layout: which files there are; ``build.py`` says what is in them."""

from __future__ import annotations

from typing import ClassVar

from cocite.layouts.format import WholeFormat
from cocite.layouts.plan import PartPlan

__all__ = ["DEGREES", "NORMS", "LinksFormat", "has_degrees", "has_norms"]

DEGREES, NORMS = "degrees", "norms"


def has_norms(plan: PartPlan) -> bool:
    """Whether a part has the norms that ``idf`` needs."""
    return any(setting.name == "idf" for setting in plan.measure.ask)


def has_degrees(plan: PartPlan) -> bool:
    """Whether a part has what its measure divides by: ``proximity``."""
    return plan.measure.name == "proximity"


class LinksFormat(WholeFormat):
    """The layout ``links``."""

    files: ClassVar[dict[str, str]] = {
        "in_offsets": "<u8[n + 1]",
        "in_neighbours": "<u4[m]",
        "in_weights": "<f4[m]",
        "out_offsets": "<u8[n + 1]",
        "out_neighbours": "<u4[m]",
        "out_weights": "<f4[m]",
        "any_offsets": "<u8[n + 1]",
        "any_neighbours": "<u4[E]",
        "any_weights": "<f4[E]",
        NORMS: "<f8[n, 2]",
        DEGREES: "<f8[n]",
    }

    @classmethod
    def files_of(cls, plan: PartPlan) -> dict[str, str]:
        """Links by both ends, or taken either way; weights if the part goes by them, norms for
        common neighbours, degrees for proximity.
        """
        way, weighted = plan.direction == "any", plan.weighted
        has = {"weights": weighted, NORMS: has_norms(plan), DEGREES: has_degrees(plan)}
        return {
            name: form
            for name, form in cls.files.items()
            if has.get(name.split("_")[-1], True)
            and ("_" not in name or name.startswith("any_") == way)
        }
