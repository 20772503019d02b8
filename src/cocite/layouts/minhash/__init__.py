"""The layout ``minhash``: nodes grouped by the winner of each ring."""
