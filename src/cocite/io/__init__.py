"""Links in and results out: readers, ingestion, databases, remote files, writers."""
