"""The layout ``nearest``: a list of nearest pages for each page."""
