"""All settings of a training, put together from their groups."""

from __future__ import annotations

from dataclasses import dataclass

from .adapter_settings import AdapterSettings
from .loop_settings import LoopSettings
from .rank_settings import RankSettings
from .step_settings import StepSettings
from .workload_settings import WorkloadSettings


@dataclass(frozen=True)
class TrainingSettings(RankSettings, LoopSettings, AdapterSettings, StepSettings, WorkloadSettings):
    """All that a training is set to. Fields follow the bases, last first."""
