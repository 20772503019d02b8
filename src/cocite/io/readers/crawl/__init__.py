"""Crawls: web archives, and pages that are fetched, as captures of URLs and the links on them."""
