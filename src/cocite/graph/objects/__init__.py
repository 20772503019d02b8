"""Links that are objects in memory: what they are, how they are stored, and the way back.

A new kind is a function that gives a ``Given``, and its line of ``kinds.py``.
"""
