"""Folders of Markdown notes: Obsidian, Foam and Logseq vaults, sources for Hugo and others."""

LIBRARIES = ("markdown_it", "mdit_py_plugins", "yaml")
EXTRA = "notes"
"""The extra that installs :data:`LIBRARIES`."""
