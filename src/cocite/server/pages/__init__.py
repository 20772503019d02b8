"""Web pages, rendered on the server, usable without scripts or external resources."""
