"""Read by gunicorn, which looks for this file where it is started. What is given on its command line wins."""

worker_class = "gthread"

SWITCH_SECONDS = 0.001
"""How long one thread may keep the interpreter from the others.

A page waits so long at each of its queries while a result document is read: Python's own 5 ms add up.
"""


def post_worker_init(worker):
    """Tell the portal how many threads serve it: fewer may wait for a run than there are.

    Each of them keeps its connection to the database open. To open SQLite's file and to make Django's functions known
    to it is half of what a small answer costs; elsewhere it is closed, for a process that forks must not leave it to
    its child.
    """
    import sys

    from django.conf import settings
    from django.db import connections

    sys.setswitchinterval(SWITCH_SECONDS)
    settings.WEB_THREADS = worker.cfg.threads
    connections.settings["default"]["CONN_MAX_AGE"] = 60
