"""Watched trainings: none can be requested here, as a training is watched where it is, and reported."""

from __future__ import annotations

from analysis.api.kinds.requests import Requests
from analysis.runs.kinds.watch import WATCHED_THERE
from engine.recording.result import WatchResult
from engine.recording.spec import WatchSpec


class Watch(Requests):
    spec_name = WatchSpec.__name__
    result_type, result_name = WatchResult, WatchResult.__name__
    elsewhere = WATCHED_THERE
