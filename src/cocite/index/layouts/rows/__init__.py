"""The layout ``nearest``: a list of nearest pages for each page.

The layout ``features``: what PageSim hands from page to page.

The layout ``text``: the words of every page, and the pages of every word.
"""
