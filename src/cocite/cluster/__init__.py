"""Where work runs. Results never depend on it: randomness is keyed by what it decides."""

from cocite.cluster.threads import Pace, Team, in_order

__all__ = ["Pace", "Team", "in_order"]
