"""No layout: a stored graph in the place of an index, its samples drawn when asked."""
