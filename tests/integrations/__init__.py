"""Queries of links in memory, and answers in other libraries."""
