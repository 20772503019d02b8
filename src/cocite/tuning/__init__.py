"""Choosing what an index is made of, without labels or with them: ``cocite tune``."""

from cocite.tuning.result import Tried, Tuned
from cocite.tuning.tuning import tune

__all__ = ["Tried", "Tuned", "tune"]
