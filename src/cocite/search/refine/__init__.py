"""Refined answers: what samples rank roughly, settled."""
