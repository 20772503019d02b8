"""Folders of Markdown notes: vaults of Obsidian, Foam and Logseq, sources of Hugo and others."""
