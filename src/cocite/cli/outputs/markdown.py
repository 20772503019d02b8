"""``--format markdown``: the rows of the document as a table of GitHub's Markdown.

A name that is a URL is a link, called by the title of its page where there is one; else titles have
a column of their own. All signs that Markdown or HTML would read are escaped, so that what is shown
is the name. Numbers are rounded to four digits, as in the table for people; ``--format csv`` has
them whole.
"""

from __future__ import annotations

from cocite.cli.outputs import Reply
from cocite.documents import markdown

__all__ = ["show"]


def show(reply: Reply) -> None:
    """Print a table; the columns of numbers stand to the right."""
    print(markdown(reply.document.rows()))
