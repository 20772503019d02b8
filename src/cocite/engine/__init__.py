"""The two passes over the stored graph."""

from cocite.engine.external import (
    BLOCK_NODE,
    ROW_ROOM,
    Dealer,
    ExternalWalker,
    Meetings,
)
from cocite.engine.walk import MAX_LENGTH, FingerprintGraph, Step, Walker, walker_bytes

__all__ = [
    "BLOCK_NODE",
    "MAX_LENGTH",
    "ROW_ROOM",
    "Dealer",
    "ExternalWalker",
    "FingerprintGraph",
    "Meetings",
    "Step",
    "Walker",
    "walker_bytes",
]
