"""The layout ``links``: the links by both ends, for measures without samples."""
