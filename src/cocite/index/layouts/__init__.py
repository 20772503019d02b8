"""How the parts of an index are stored: interfaces, and a folder for each kind of layout."""
