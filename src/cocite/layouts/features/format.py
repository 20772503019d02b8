"""The features layout: which files there are; ``build.py`` says what is in them."""

from __future__ import annotations

from typing import ClassVar

from cocite.layouts.format import WholeFormat
from cocite.layouts.plan import PartPlan
from cocite.measures.pagesim import NORMALISED

__all__ = ["OWN", "FeaturesFormat"]

OWN = "own"


class FeaturesFormat(WholeFormat):
    """The layout ``features``."""

    files: ClassVar[dict[str, str]] = {
        "holders.offsets": "<u8[n + 1]",
        "holders.nodes": "<u4[E]",
        "holders.values": "<f4[E]",
        "features.offsets": "<u8[n + 1]",
        "features.nodes": "<u4[E]",
        "features.values": "<f4[E]",
        "cut": "<f4[n]",
        OWN: "<f8[n]",
    }

    @classmethod
    def files_of(cls, plan: PartPlan) -> dict[str, str]:
        """What every node scores with itself is there if scores are normalised."""
        has = {OWN: plan.settings[NORMALISED]}
        return {name: form for name, form in cls.files.items() if has.get(name, True)}
