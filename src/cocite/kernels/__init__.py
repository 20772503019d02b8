"""Compiled kernels: arrays in, arrays out.

A kernel has at most eight typed arguments, and writes its results into arrays that the caller
allocated. It keeps no state, does no input or output, and releases the interpreter lock, so threads
run kernels in parallel. Read-only arrays may be memory-mapped. Callers validate the data.

The build compiles kernels for the types in their annotations (``hatch_build.py``). Only this
package uses Numba, and only to build and to debug.
"""
