"""Refined answers: more accurate scores, computed from the graph."""
