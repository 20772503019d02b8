"""Kernels: arrays in, arrays out.

A kernel has at most eight arguments. It takes typed arrays, also memory-mapped ones, and writes
into arrays that its caller allocated. It checks nothing: callers validate data first. Kernels hold
no state, do no input or output, and release the interpreter lock, so threads run them in parallel.
The package build compiles them (``hatch_build.py``) for the types of their annotations.

Only this package uses Numba, which is needed to build and to debug it.
"""
