"""The two passes over the stored graph."""

from cocite.engine.walk import MAX_LENGTH, FingerprintGraph, Mover, Step, Walker, walker_bytes

__all__ = ["MAX_LENGTH", "FingerprintGraph", "Mover", "Step", "Walker", "walker_bytes"]
