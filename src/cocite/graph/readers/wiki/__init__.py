"""Dumps of MediaWiki: tables of its database, as links between pages."""
