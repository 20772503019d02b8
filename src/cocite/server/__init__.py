"""The HTTP API on opened indexes, with the terms and the JSON of the command line.

``server/results.py`` has the configuration; ``server/processes.py`` runs the processes with
Granian, which map the same files; ``server/app.py`` is the application in each of them. One table
(``server/requests.py``) declares all parameters, for queries and the OpenAPI document.
"""
