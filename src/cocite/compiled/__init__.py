"""Compiled kernels: where they are kept, what is there, and how long compiling took.

Kernels are compiled when they are first used, and kept on disk for all processes that follow. This
room knows nothing of Numba, so that looking at a cache costs nothing, and running what is kept
little (``compiled/native.py``): ``kernels`` asks it for the place, and tells it when it begins and
ends to compile.
"""
