"""Answers for many nodes at once, written to a file."""
