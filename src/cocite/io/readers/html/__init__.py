"""HTML: a folder of pages as a site, and the links on a page as a browser finds them."""
