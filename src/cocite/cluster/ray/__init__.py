"""Work on several machines with Ray, which is imported only here (extra ``cluster``).

Ray schedules, moves, retries and restarts work; results do not depend on it.
"""

from cocite.cluster.ray.cluster import Actor, Answer, Cluster, ClusterNode

__all__ = ["Actor", "Answer", "Cluster", "ClusterNode"]
