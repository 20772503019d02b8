"""An index whose samples are on other machines: shards of them, in servers.

    replicas.py   which servers are asked, a question to all shards, what comes back in time
    index.py      what a server holds, and the scorer of what shards report

Nothing here imports what carries questions to other machines: that is ``cluster``'s.
"""
