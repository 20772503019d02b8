"""Work on several machines with Ray (extra ``cluster``), which is imported only here."""

from cocite.cluster.ray.cluster import Actor, Answer, Cluster, ClusterNode

__all__ = ["Actor", "Answer", "Cluster", "ClusterNode"]
