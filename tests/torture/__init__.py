"""Torture: stores, files and processes are harmed on purpose, and what came of it is counted.

A file for each kind of fault (``arrays.py``, ``facts.py``); ``children.py`` is what runs a case in
a process of its own, within bounds, ``stores.py`` what is harmed, ``verbs.py`` what is asked then.
``python -m tests.torture`` runs them and prints one table.
"""
