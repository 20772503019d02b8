"""Folders of Markdown notes: vaults of Obsidian, Foam and Logseq, sources of Hugo and others."""

LIBRARIES = ("markdown_it", "mdit_py_plugins", "yaml")
EXTRA = "notes"
"""What reads notes, and the extra that brings it."""
