"""Every limit of the API that is no setting of the server and no length of a column.

`memorymark_site.settings` has those that a lab may change: sizes of bodies, rates, requests that wait.
"""

from __future__ import annotations

PAGE, PAGE_MAX = 50, 500
"""Rows of a page."""
LOG_LINES, LOG_LINES_MAX = 200, 1_000
"""Log lines of an answer."""
ATTEMPT_MAX = 2**31 - 1

ASK_AGAIN_SECONDS, BUSY_SECONDS = 2, 10
"""`Retry-After` of a run that is not over; and where too many requests wait already."""
WAIT_SECONDS, WAIT_MAX_SECONDS = 30, 90
"""How long a request waits for the end of a run."""
WAIT_POLL_SECONDS = 0.25

STREAM_MAX_SECONDS = 600.0
"""A stream ends after this time, and its client continues with another: rights are checked again, threads move on."""
STREAM_HEARTBEAT_SECONDS, STREAM_POLL_SECONDS = 15.0, 0.5
STREAM_ROWS_AT_ONCE = 200

DOCUMENTS_AT_ONCE, DOCUMENT_WAIT_SECONDS = 1, 5.0
"""Result documents that a process reads at a time: their work shares the interpreter with all other requests.

Two at once are stored no sooner than one after the other, and everybody else waits twice as long.
"""
DOCUMENT_BUSY_SECONDS = (1, 2, 3, 4)
"""One of these is the `Retry-After`: many documents that were turned away at once would come again at once."""
IMPOSSIBLE_SHOWN, IMPOSSIBLE_LENGTH = 10, 200
"""Figures of a refused document that the answer names, and the characters of each."""

NOBODYS_SECONDS = 600
"""The longest time budget of a run that nobody signed in for."""
