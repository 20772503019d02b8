"""Related pages for generators of sites: what their plug-ins (``cocite.sphinx``, ``cocite.mkdocs``)
have in common.

    related.py    from who links whom to the related pages of each, kept between builds
    list.py       the list that stands under a page
"""

from cocite.interop.sites.list import related_list
from cocite.interop.sites.related import MIN_SCORE, related_pages

__all__ = ["MIN_SCORE", "related_list", "related_pages"]
