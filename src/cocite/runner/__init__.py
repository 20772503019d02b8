"""Where work runs. Results never depend on it: randomness is keyed by what it decides."""

from cocite.runner.team import Team
from cocite.runner.threads import in_order

__all__ = ["Team", "in_order"]
