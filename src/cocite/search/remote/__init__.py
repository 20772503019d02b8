"""Indexes with shards of samples on other machines.

    replicas.py   chooses servers for a query, and collects responses that arrive in time
    index.py      the server of a shard, and the scorer of responses

The transport to other machines is in ``cluster``, which is not imported here.
"""
