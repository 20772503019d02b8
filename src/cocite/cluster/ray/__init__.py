"""Work on several machines, by Ray: the only place that imports it (the extra ``cluster``).

Ray schedules, moves, retries and restarts; results do not depend on it.
"""

from cocite.cluster.ray.cluster import Actor, Answer, Cluster, ClusterNode

__all__ = ["Actor", "Answer", "Cluster", "ClusterNode"]
