"""The id of the request on each line of the log."""

from __future__ import annotations

import logging

from analysis.audit.context import cause_now


class RequestIdFilter(logging.Filter):
    """Lets every line through, and tells the formatter on which request's behalf it was written."""

    def filter(self, record: logging.LogRecord) -> bool:
        request_id = cause_now().request_id
        record.of_request = f" [{request_id}]" if request_id else ""
        return True
