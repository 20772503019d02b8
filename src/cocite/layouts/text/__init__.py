"""The layout ``text``: the words of every page, and the pages of every word."""
