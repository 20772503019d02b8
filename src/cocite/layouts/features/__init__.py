"""The layout ``features``: what PageSim hands from page to page."""
