"""Read by gunicorn, which looks for this file where it is started. What is given on its command line wins."""

worker_class = "memorymark_site.web_worker.HeaderFirstWorker"


def post_worker_init(worker):
    """Tell the portal how many threads serve it: fewer may wait for a run than there are.

    Each of them keeps its connection to the database open. To open SQLite's file and to make Django's functions known
    to it is half of what a small answer costs; elsewhere it is closed, for a process that forks must not leave it to
    its child.
    """
    from django.conf import settings
    from django.db import connections

    settings.WEB_THREADS = worker.cfg.threads
    connections.settings["default"]["CONN_MAX_AGE"] = 60
