"""The ``links`` layout: the links by both ends, for measures without samples."""
