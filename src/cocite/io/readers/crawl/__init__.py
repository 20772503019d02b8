"""Crawls: web archives, and fetched pages, as captures of URLs with the links on them."""
