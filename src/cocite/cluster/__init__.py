"""Threads, processes and machines. Results never depend on where work runs."""

from cocite.cluster.threads import Pace, Team, in_order

__all__ = ["Pace", "Team", "in_order"]
