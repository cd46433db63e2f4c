"""Every table of the portal. Import models from here: `from analysis.models import Run`."""

from analysis.models.accounts import ApiToken, IdempotencyKey, Quota, Throttle
from analysis.models.annotations import RunSetting, RunText, SavedView, ShareLink, Tag, TrendAcknowledgement
from analysis.models.audit import AuditEntry
from analysis.models.device import Device, DeviceDay, GpuPrice, Host, MaintenanceMixin
from analysis.models.matrix import MatrixCell
from analysis.models.measurement import Measurement, RunLog
from analysis.models.news import (
    AllowedHost,
    Channel,
    Delivery,
    DeliveryAttempt,
    DeliveryState,
    NewsEvent,
    NewsKind,
    Scope,
    Subscription,
)
from analysis.models.report import Report, Trust
from analysis.models.retention import RetentionRule
from analysis.models.run import Attempt, Run
from analysis.models.run_states import (
    KIND_CHOICES,
    PUBLISHED_KINDS,
    SEARCHES,
    TERMINAL_STATES,
    State,
    published_kind,
)
from engine.estimate.spec import ALL_GPUS, CPU
from engine.questions.kinds import RunKind
