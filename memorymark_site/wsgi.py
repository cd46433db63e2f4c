"""Entry point of the web server."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from django.core.wsgi import get_wsgi_application

os.umask(0o077)  # as in manage.py
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memorymark_site.settings")
_CHARSET = re.compile(r"\s*;\s*charset\s*=[^;]*", re.IGNORECASE)
_django = get_wsgi_application()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Treat all text as UTF-8: with `charset=hex` in a request Django would fail before our code runs."""
    if "CONTENT_TYPE" in environ:
        environ["CONTENT_TYPE"] = _CHARSET.sub("", environ["CONTENT_TYPE"])
    return _django(environ, start_response)
