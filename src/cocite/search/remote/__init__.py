"""Indexes with shards of samples on other machines.

    replicas.py   which servers get a query, and which responses arrive in time
    index.py      the server of a shard, and the scorer of responses

The transport to other machines is in ``cluster``, which is not imported here.
"""
