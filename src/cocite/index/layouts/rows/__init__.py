"""Layouts of rows.

* ``nearest``: a list of nearest pages for each page
* ``rows``: families of such lists, as quantized values (*codes*)
* ``features``: the scores that PageSim passes from page to page
* ``text``: the words of every page, and the pages of every word
"""
