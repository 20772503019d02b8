"""Where work runs. Results never depend on it: random numbers are keyed by what they decide."""

from cocite.cluster.threads import Pace, Team, in_order

__all__ = ["Pace", "Team", "in_order"]
