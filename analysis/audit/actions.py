"""The actions of the audit log, and the types of their targets."""

ACTIONS = (
    *("login", "login.failed", "login.lock", "logout"),
    *("run.create", "run.cancel", "run.retry", "run.annotate", "run.tag", "run.untag", "run.baseline"),
    *("run.acknowledge", "run.delete", "run.restore", "run.export"),
    *("run.report", "run.report_result", "run.report_refuse", "run.decide_again"),
    *("trust.give", "trust.revoke", "share.create", "share.withdraw"),
    *("device.change", "device.calibrate", "device.delete", "host.change", "host.delete"),
    *(f"{kind}.{verb}" for kind in ("gpuprice", "user", "group", "quota") for verb in ("create", "change", "delete")),
    *("token.create", "token.revoke", "savedview.create", "savedview.change", "savedview.delete"),
    *("subscription.create", "subscription.change", "subscription.rotate", "subscription.delete"),
    *("allowedhost.create", "allowedhost.change", "allowedhost.delete"),
    *("retentionrule.create", "retentionrule.change", "retention"),
)
TARGET_TYPES = (
    *("run", "device", "host", "gpuprice", "user", "group", "quota", "apitoken", "sharelink", "savedview"),
    *("subscription", "allowedhost", "retentionrule", "address", "report", "trust"),
)
