"""Exact twins: slow, plain, and without a line in common with what they check.

They use NumPy and Python integers only, never ``cocite.kernels``; where a formula is a paper's,
its section is named.
"""
