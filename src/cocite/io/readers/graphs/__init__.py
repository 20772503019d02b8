"""Formats of whole graphs: GraphML, GEXF, GML, JSON, RDF, and works with citations."""
