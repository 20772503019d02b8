"""Input and output: readers, ingest, databases, remote stores and writers."""
