"""Pages for people: HTML rendered here, without external resources or required scripts."""
