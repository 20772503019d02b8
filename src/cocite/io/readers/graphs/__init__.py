"""Formats of whole graphs, read in one way: GraphML, GEXF, GML, JSON of nodes and links."""
