"""A cluster on paper: builds and servers on any number of machines, without Ray.

    python -m benchmarks.simulator reproduce   the runs made here, measured and simulated
    python -m benchmarks.simulator sizes       1, 4 and 100 billion pages, for docs/cluster.md

``events`` has the clock, the machines and their processors; ``building`` and ``serving`` say what a
cluster does; ``constants`` what that costs, measured; ``sizes`` works out machines, disk, memory,
hours and bytes on the wire.
"""
