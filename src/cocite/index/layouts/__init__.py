"""Layouts: how the parts of an index are stored. A folder for each, beside their interfaces."""
