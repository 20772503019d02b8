"""Torture: harm stores, files and processes on purpose, and count the outcomes.

``kinds.py`` lists the kinds of faults, with their targets and the files that inject them. Hostile
stores: ``children.py`` runs a case in a separate process within limits, ``stores.py`` makes the
stores, ``verbs.py`` queries them. Kills, power loss and full disks: ``operations.py`` defines the
operations, ``shim.py`` intercepts their disk calls. ``python -m tests.torture`` runs all of them
and prints one table; ``report.py`` writes it into ``docs/reliability.md``.
"""
