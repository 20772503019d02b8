"""The two passes over the stored graph: the walk with its steps, and the scan; and the diagonal of
linearized SimRank.
"""
