"""What layouts of min-hashes share: winners of rings, 16 samples at a time, and their matches."""
