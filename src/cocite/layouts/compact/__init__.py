"""The layout ``compact``: the one step that every node takes, for walks of any length."""
