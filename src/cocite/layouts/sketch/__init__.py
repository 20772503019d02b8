"""The layout ``sketch``: some bits of a hash of each winner."""
