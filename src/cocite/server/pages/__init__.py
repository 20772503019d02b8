"""Web pages, rendered on the server, usable without scripts and external resources."""
