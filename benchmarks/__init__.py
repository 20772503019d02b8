"""Benchmarks are data: ``suite.toml`` says what, ``python -m benchmarks`` measures it.

Every step runs in a process of its own, so that peak memory is that step's and kernels are
loaded from their cache as a user's are. Results carry date and machine; the README's figures are
rendered from the newest results file and a test compares them.
"""
