"""One-call queries, and plug-ins for other libraries and site generators.

``io/objects.py`` converts objects to graphs and back; ``search/hits.py`` makes tables of hits.
"""
