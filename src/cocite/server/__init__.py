"""The service: an HTTP API on opened indexes, in the words and the JSON of the command line.

``server/results.py`` says what is served and how, ``server/processes.py`` runs it (Granian, several
processes that map the same files), ``server/app.py`` is one process of it. Everything the API takes
stands in one table (``server/requests.py``), from which questions are read and the OpenAPI document
is made.
"""
