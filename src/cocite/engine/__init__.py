"""The two passes over the stored graph: the walk with its steps, and the scan; and the diagonal of
linearised SimRank.
"""

from cocite.engine.diagonal import LIMITS, Diagonal, diagonal_room, make_diagonal, mixture
from cocite.engine.external import BLOCK_NODE, ROW_ROOM, Dealer, ExternalWalker, Meetings
from cocite.engine.probe import follow, probe
from cocite.engine.rings import Ring, Rings
from cocite.engine.rooms import make_room
from cocite.engine.scan import Fold, Scan
from cocite.engine.scan_plan import ScanPlan, Way
from cocite.engine.step import Step
from cocite.engine.walk import MAX_LENGTH, FingerprintGraph, Mover, Walker, walker_bytes
from cocite.engine.weights import (
    StepWeights,
    idf_weights,
    inverse_degrees,
    step_weights,
    telling_weights,
)

__all__ = [
    "BLOCK_NODE",
    "LIMITS",
    "MAX_LENGTH",
    "ROW_ROOM",
    "Dealer",
    "Diagonal",
    "ExternalWalker",
    "FingerprintGraph",
    "Fold",
    "Meetings",
    "Mover",
    "Ring",
    "Rings",
    "Scan",
    "ScanPlan",
    "Step",
    "StepWeights",
    "Walker",
    "Way",
    "diagonal_room",
    "follow",
    "idf_weights",
    "inverse_degrees",
    "make_diagonal",
    "make_room",
    "mixture",
    "probe",
    "step_weights",
    "telling_weights",
    "walker_bytes",
]
