"""The service: an HTTP API on opened indexes, in the words and the JSON of the command line.

``config.py`` says what is served and how, ``serving.py`` runs it (Granian, several processes that
map the same files), ``app.py`` is one process of it. Everything the API takes stands in one table
(``parameters.py``), from which questions are read and the OpenAPI document is made.
"""
