"""Benchmarks: ``suite.toml`` defines the steps, and ``python -m benchmarks`` measures them.

Every step runs in its own process, so peak memory is that of the step, and kernels are loaded from
their cache as for users. Results have a date and a machine. The README's figures are generated from
the newest results file, which a test checks.
"""
