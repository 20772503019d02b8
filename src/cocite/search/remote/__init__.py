"""Indexes whose sample shards are on other machines, reached through ``cluster``."""
