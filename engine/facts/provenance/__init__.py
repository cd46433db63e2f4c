"""The circumstances of a run's start: key, host, time, job, container and limits. `parse` is PURE, `read` reads."""
