"""The HTTP API, which answers with the JSON of the command line.

``results.py`` has the configuration; ``processes.py`` runs the processes with Granian; ``app.py``
is the application in each process; ``requests.py`` declares all parameters.
"""
