"""Work on several machines, by Ray: the only place that imports it (the extra ``cluster``).

    cluster.py   a cluster as its driver sees it: nodes, items in order, values, waiting
    actors.py    what lives on a node and is called there; what came out of it, errors included
    local.py     clusters of this machine: who starts them, where they are known
    nodes.py     the process that has their nodes, and takes them with it

Ray schedules, moves, retries and restarts. What comes out does not depend on it: randomness is
keyed by what it decides, and results come in the order of the items.
"""

from cocite.cluster.ray.cluster import Actor, Answer, Cluster, ClusterNode

__all__ = ["Actor", "Answer", "Cluster", "ClusterNode"]
