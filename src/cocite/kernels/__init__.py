"""The Numba kernels: arrays in, arrays out.

A kernel takes typed arrays (mapped ones included), writes into arrays its caller
allocated, takes at most eight arguments and checks nothing: whoever calls it has
validated the data at the border. Kernels hold no state, do no input or output and
release the interpreter lock, so that threads run them side by side. The compiled code
is kept on disk (``compiled``); the first calls of a new installation compile for some seconds.

This package is the only place that imports Numba, and nothing does before there is something to
compile or much to compute (``kernels/_jit.py``): one question does not pay for it.
"""

from cocite.kernels._jit import brief, helper, kernel, load_numba, prefetch, shared

__all__ = ["brief", "helper", "kernel", "load_numba", "prefetch", "shared"]
