"""Layouts: how the parts of an index lie on disk. A folder each, below the contracts they keep."""
