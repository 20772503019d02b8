"""The service: an HTTP API on opened indexes, with the terms and the JSON of the command line.

``server/results.py`` holds the configuration, ``server/processes.py`` runs the processes (Granian;
they map the same files), and ``server/app.py`` is the application in each of them. One table
(``server/requests.py``) declares all parameters; queries and the OpenAPI document derive from it.
"""
