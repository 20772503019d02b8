"""Simulation of builds and servers on clusters of any size, without Ray.

    python -m benchmarks.simulator reproduce   measured runs and their simulations
    python -m benchmarks.simulator sizes       1, 4 and 100 billion pages, for docs/cluster.md

``events`` has the clock, the machines and their processors; ``building`` and ``serving`` model what
a cluster does; ``constants`` has measured costs; ``sizes`` computes machines, disk, memory, hours
and network traffic.
"""
