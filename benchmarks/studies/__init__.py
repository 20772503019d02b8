"""Studies: suites of data, measures and sweeps (``python -m benchmarks.studies``)."""
