"""Adds the request's id to each log line."""

from __future__ import annotations

import logging

from analysis.audit.context import cause_now


class RequestIdFilter(logging.Filter):
    """Passes every line, and gives the formatter the id of its request."""

    def filter(self, record: logging.LogRecord) -> bool:
        request_id = cause_now().request_id
        record.request_text = f" [{request_id}]" if request_id else ""
        return True
