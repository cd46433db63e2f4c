"""The document of a watched training, read back."""

from __future__ import annotations

from dataclasses import dataclass

from ...facts.result import DeviceFacts
from ...recording.recording import Process
from ...recording.result import WatchResult
from .stored import StoredSpec, WithoutSizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched(WatchResult, WithoutSizes):
    spec: StoredSpec  # type: ignore[assignment]  # has the same members
    device: DeviceFacts
    process: Process
