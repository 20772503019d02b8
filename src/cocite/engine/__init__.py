"""Passes over the stored graph: the walk and the scan; and the diagonal of linearized SimRank."""
