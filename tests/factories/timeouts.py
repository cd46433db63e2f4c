"""Time limits of a supervised run that a test can wait for."""

from analysis.workers.supervisor import SupervisorTimeouts

QUICK = SupervisorTimeouts(
    tick_seconds=0.05, check_seconds=0.05, heartbeat_seconds=0.1, grace_seconds=0.3, wall_grace_seconds=0
)
