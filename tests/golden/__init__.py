"""Graphs and indexes as earlier releases wrote them, kept for ever. See README.md."""
