"""What scores are counted in: grains, whole numbers, so that sums do not depend on their order."""

from __future__ import annotations

__all__ = ["GRAINS"]

GRAINS = 10**12
