"""What a measure is to the rest of the system.

Both measures here are expected f-meeting distances (001, Definition 1): the score of u and v is
E[f(tau)], where tau is the step at which their reversed walks first meet, f(tau) = decay**tau, and
f = 0 if they do not meet within ``length`` steps. They differ in how walks choose
their next node. As labels are stored and not scores, the decay is chosen when asking.
"""

from __future__ import annotations

from dataclasses import dataclass

from cocite.engine import Step

__all__ = ["Measure"]


@dataclass(frozen=True)
class Measure:
    """``name`` as users type it, one line on what it is, and the step its walks take."""

    name: str
    summary: str
    step: Step
