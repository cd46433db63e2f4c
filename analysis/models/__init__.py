"""Every table of the portal. Import models from here: `from analysis.models import Run`.

device, run, measurement   hosts and devices; runs and attempts; probes and log lines
accounts, api, audit       tokens and quotas; idempotency keys and throttles; the audit log
report                     how a run of another machine came here, and whose reports are trusted
annotations, trend         tags, saved views, search terms; notes on steps
matrix, gpu_price          cells of the GPU x model matrix; the lab's own prices
news                       events, subscriptions, deliveries, allowed hosts
share_link                 links that show one run without a login
retention                  after how many days rows are deleted
run_states                 the states and kinds of a run
querysets, device_access   named queries of runs and devices; who may use which device
keyset, indexes            lists in pages that do not shift; the indexes of the history's sort orders

"""

from analysis.models.accounts import ApiToken, Quota
from analysis.models.annotations import RunSetting, RunText, SavedView, Tag
from analysis.models.api import IdempotencyKey, Throttle
from analysis.models.audit import AuditEntry
from analysis.models.device import Device, Host, MaintenanceMixin
from analysis.models.gpu_price import GpuPrice
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
from analysis.models.run import ALL_GPUS, CPU, Attempt, Run
from analysis.models.run_states import ON_DEVICES, TERMINAL_STATES, RunKind, State
from analysis.models.share_link import ShareLink
from analysis.models.trend import TrendAcknowledgement

__all__ = [
    "ALL_GPUS",
    "CPU",
    "ON_DEVICES",
    "TERMINAL_STATES",
    "AllowedHost",
    "ApiToken",
    "Attempt",
    "AuditEntry",
    "Channel",
    "Delivery",
    "DeliveryAttempt",
    "DeliveryState",
    "Device",
    "GpuPrice",
    "Host",
    "IdempotencyKey",
    "MaintenanceMixin",
    "MatrixCell",
    "Measurement",
    "NewsEvent",
    "NewsKind",
    "Quota",
    "Report",
    "RetentionRule",
    "Run",
    "RunKind",
    "RunLog",
    "RunSetting",
    "RunText",
    "SavedView",
    "Scope",
    "ShareLink",
    "State",
    "Subscription",
    "Tag",
    "Throttle",
    "TrendAcknowledgement",
    "Trust",
]
