"""The two passes over the stored graph."""

from cocite.engine.rings import Ring, Rings
from cocite.engine.scan import Fold, Scan
from cocite.engine.scan_plan import ScanPlan, Way
from cocite.engine.walk import MAX_LENGTH, FingerprintGraph, Step, Walker, walker_bytes

__all__ = [
    "MAX_LENGTH",
    "FingerprintGraph",
    "Fold",
    "Ring",
    "Rings",
    "Scan",
    "ScanPlan",
    "Step",
    "Walker",
    "Way",
    "walker_bytes",
]
