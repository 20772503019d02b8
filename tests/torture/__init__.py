"""Torture: stores, files and processes are harmed on purpose, and what came of it is counted.

``kinds.py`` lists the kinds of faults, what each attacks and which file injects it. Hostile stores:
``children.py`` runs a case in a process of its own, within bounds, ``stores.py`` is what is harmed,
``verbs.py`` what is asked then. Kills, power and full disks: ``operations.py`` is what is done
meanwhile, ``shim.py`` stands between that and the disk. ``python -m tests.torture`` runs them and
prints one table; ``report.py`` writes it into ``docs/reliability.md``.
"""
