"""Stores that lie elsewhere: copied once into a local cache, checked, and files put there.

urls.py    places by URL, of whatever fsspec reaches (the extra ``cluster``)
cache.py   copies of stores on this machine: once, whole, bounded
"""

from cocite.copies.cache import copied
from cocite.copies.urls import Remote, is_url

__all__ = ["Remote", "copied", "is_url"]
