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
    """All text is UTF-8, whatever a request says: of `charset=hex` Django would fail before any code of ours runs."""
    if "CONTENT_TYPE" in environ:
        environ["CONTENT_TYPE"] = _CHARSET.sub("", environ["CONTENT_TYPE"])
    return _django(environ, start_response)
