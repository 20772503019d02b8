"""Web pages, rendered on the server; they need no scripts and no external resources."""
