"""The circumstances of a run's start: its key, host and time, the scheduler's job, the container, their limits.

parse   makes facts from texts of variables and files (PURE)
read    reads them on this machine
"""
