"""Readers: each converts one format to clean rows for ``ingest``.

To add a format, write a module with a ``READER`` (see ``io/readers/contract.py``), and list it in
``io/readers/formats.py``.
"""

from cocite.io.readers.contract import FormatReader as FormatReader
from cocite.io.readers.contract import Found as Found
from cocite.io.readers.contract import Job as Job
from cocite.io.readers.contract import Read as Read
from cocite.io.readers.contract import ReadOptions as ReadOptions
from cocite.io.readers.formats import FORMATS as FORMATS
from cocite.io.readers.formats import Format as Format
from cocite.io.readers.formats import reader_of as reader_of
from cocite.io.readers.formats import readers as readers
from cocite.io.readers.rows import clean_rows as clean_rows
from cocite.io.readers.sources import Source as Source
from cocite.io.readers.sources import expand as expand
from cocite.io.readers.tables import LABELS as LABELS
from cocite.io.readers.tables import PAIRS as PAIRS
from cocite.io.readers.tables import NameTable as NameTable
from cocite.io.readers.tables import read_values as read_values
