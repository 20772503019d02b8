"""Graphs and indexes as earlier releases wrote them, kept forever. See README.md."""
