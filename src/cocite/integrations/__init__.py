"""One-call queries of links in memory, and plug-ins for other libraries and site generators.

``io/objects.py`` converts objects to stored graphs and back; ``search/hits.py`` makes tables of
hits.
"""
