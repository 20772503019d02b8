"""Work on several machines with Ray (extra ``cluster``), which is imported only here.

Ray schedules, moves and retries work; results do not depend on it.
"""

from cocite.cluster.ray.cluster import Actor, Answer, Cluster, ClusterNode

__all__ = ["Actor", "Answer", "Cluster", "ClusterNode"]
