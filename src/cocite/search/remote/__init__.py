"""An index whose samples answer from elsewhere: shards of them, in servers on several machines.

    holder.py     what a server holds: some samples of every part
    breaker.py    which servers are asked, and which are left alone for a while
    company.py    a question to all shards, and what comes back before its deadline
    spread.py     the index that asks them, and the one that answers a single question

Nothing here imports what carries questions to other machines: that is ``runner``'s.
"""
