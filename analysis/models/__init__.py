"""Every table of the portal: `from analysis.models import Run`."""

from analysis.models.accounts import ApiToken, Quota
from analysis.models.annotations import RunWord, SavedView, Tag
from analysis.models.api import IdempotencyKey, Throttle
from analysis.models.audit import AuditEntry
from analysis.models.device import Device, Host, MaintenanceMixin
from analysis.models.gpu_price import GpuPrice
from analysis.models.matrix import MatrixCell
from analysis.models.measurement import Measurement, RunLog
from analysis.models.retention import RetentionRule
from analysis.models.run import ALL_GPUS, TERMINAL_STATES, Attempt, Run, State
from analysis.models.trend import TrendAcknowledgement

__all__ = [
    "ALL_GPUS",
    "TERMINAL_STATES",
    "ApiToken",
    "Attempt",
    "AuditEntry",
    "Device",
    "GpuPrice",
    "Host",
    "IdempotencyKey",
    "MaintenanceMixin",
    "MatrixCell",
    "Measurement",
    "Quota",
    "RetentionRule",
    "Run",
    "RunLog",
    "RunWord",
    "SavedView",
    "State",
    "Tag",
    "Throttle",
    "TrendAcknowledgement",
]
