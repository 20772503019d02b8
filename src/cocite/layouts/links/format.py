"""The links layout: which files there are; ``build.py`` says what is in them."""

from __future__ import annotations

from typing import ClassVar

from cocite.layouts.format import WholeFormat
from cocite.layouts.plan import PartPlan

__all__ = ["NORMS", "LinksFormat", "has_norms"]

NORMS = "norms"


def has_norms(plan: PartPlan) -> bool:
    """Whether a part has the norms that ``idf`` needs."""
    return any(setting.name == "idf" for setting in plan.measure.ask)


class LinksFormat(WholeFormat):
    """The layout ``links``."""

    files: ClassVar[dict[str, str]] = {
        "in_offsets": "<u8[n + 1]",
        "in_neighbours": "<u4[m]",
        "in_weights": "<f4[m]",
        "out_offsets": "<u8[n + 1]",
        "out_neighbours": "<u4[m]",
        "out_weights": "<f4[m]",
        NORMS: "<f8[n, 2]",
    }

    @classmethod
    def files_of(cls, plan: PartPlan) -> dict[str, str]:
        """Weights if the part goes by them, norms for common neighbours."""
        has = {"weights": plan.weighted, NORMS: has_norms(plan)}
        return {k: form for k, form in cls.files.items() if has.get(k.split("_")[-1], True)}
