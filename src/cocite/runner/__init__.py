"""Where work runs. Results never depend on it: randomness is keyed by what it decides."""

from cocite.runner.team import Team
from cocite.runner.threads import Pace, in_order

__all__ = ["Pace", "Team", "in_order"]
