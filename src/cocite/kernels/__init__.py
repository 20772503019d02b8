"""Kernels: arrays in, arrays out.

A kernel takes typed arrays (mapped ones included), writes into arrays its caller
allocated, takes at most eight arguments and checks nothing: whoever calls it has
validated the data at the border. Kernels hold no state, do no input or output and
release the interpreter lock, so that threads run them side by side. They are compiled when the
package is built (``hatch_build.py``), for the types of their annotations.

This package is the only place that knows Numba, which is needed to build it, and to debug it.
"""
