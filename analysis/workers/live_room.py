"""PURE: what a run that another machine executes may store while it is live.

Of probes as many and as much as its result may hold. An engine's other events are small, and one that is not is
skipped. Log lines are bounded where they are stored, an error where it ends the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

_BYTES_MOST = {"device": 65_536, "estimate": 65_536, "started": inf, "log": inf, "error": inf}
"""The most bytes of an event: nothing of `started` is stored, and the texts of the last two are cut."""
_OTHERS_MOST = 4_096


@dataclass(slots=True)
class LiveRoom:
    """How many more probes, and how many bytes of them, a run may store. Once one is too much, it is full."""

    probes: int
    probe_bytes: int

    def admitted(self, events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for event in events:
            if event["event"] == "probe":
                yield from self._admitted_probe(event)
            elif (size := _size(event)) <= _BYTES_MOST.get(event["event"], _OTHERS_MOST):
                yield event
            else:
                what = f"a {event['event']} event of {size:,} bytes"
                yield _warning(f"Skipped {what}: more than any that an engine writes.")

    def _admitted_probe(self, event: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if self.probe_bytes <= 0:  # the log says so already
            return
        size = _size(event)
        if self.probes > 0 and size <= self.probe_bytes:
            self.probes, self.probe_bytes = self.probes - 1, self.probe_bytes - size
            yield event
        else:
            self.probe_bytes = 0
            yield _warning("The probes are as many, or as large, as a result may have: later ones are dropped.")


def _size(event: dict[str, Any]) -> int:
    return len(json.dumps(event))


def _warning(message: str) -> dict[str, Any]:
    return {"event": "log", "level": "warning", "message": message}
