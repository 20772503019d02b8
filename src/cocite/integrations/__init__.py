"""Where links in memory are asked at once, and where answers go into other libraries.

How objects become stored graphs, and graphs objects, is ``io/objects.py``; hits as tables are
``search/hits.py``. Here stands what needs both.
"""
