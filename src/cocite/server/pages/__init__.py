"""Pages for people: HTML, made here, that loads nothing from elsewhere and needs no script."""
