"""Folders of Markdown notes: vaults of Obsidian, Foam and Logseq, sources of Hugo and others."""

LIBRARIES = ("markdown_it", "mdit_py_plugins", "yaml")
EXTRA = "notes"
"""The extra that installs :data:`LIBRARIES`, the parsers of notes."""
