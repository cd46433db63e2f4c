"""Read by gunicorn, which looks for this file where it is started. What is given on its command line wins."""

worker_class = "memorymark_site.web_worker.HeaderFirstWorker"


def post_worker_init(worker):
    """Tell the portal how many threads serve it: fewer may wait for a run than there are."""
    from django.conf import settings

    settings.WEB_THREADS = worker.cfg.threads
