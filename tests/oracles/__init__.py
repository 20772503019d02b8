"""Exact oracles: slow, plain, and independent of the code that they check.

They use NumPy and Python integers only, never ``cocite.kernels``. Formulas from papers name their
sections.
"""
