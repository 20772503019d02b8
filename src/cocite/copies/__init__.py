"""Stores that lie elsewhere: copied once into a local cache, checked, and files put there.

urls.py      places by URL, of whatever fsspec reaches (the extra ``cluster``)
cache.py     copies of stores on this machine: once, whole, bounded
sending.py   stores that are made here and sent there, as one publication
"""

from cocite.copies.cache import Copy, copied, copies_folder, copies_kept, origin, remove_copies
from cocite.copies.sending import Sending, sent
from cocite.copies.urls import Remote, bare, is_url

__all__ = [
    "Copy",
    "Remote",
    "Sending",
    "bare",
    "copied",
    "copies_folder",
    "copies_kept",
    "is_url",
    "origin",
    "remove_copies",
    "sent",
]
