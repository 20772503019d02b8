"""Where links in memory are asked at once, and where answers go into other libraries.

How objects become stored graphs, and graphs objects, is ``graph/objects/``; hits as tables are
``query/hits.py``. Here stands what needs both.
"""
