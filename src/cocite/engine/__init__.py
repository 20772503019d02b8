"""The walk, one of the two passes over the stored graph: its steps, and what they weigh."""

from cocite.engine.step import Step
from cocite.engine.walk import MAX_LENGTH, FingerprintGraph, Mover, Walker, walker_bytes
from cocite.engine.weights import StepWeights, inverse_degrees, step_weights

__all__ = [
    "MAX_LENGTH",
    "FingerprintGraph",
    "Mover",
    "Step",
    "StepWeights",
    "Walker",
    "inverse_degrees",
    "step_weights",
    "walker_bytes",
]
