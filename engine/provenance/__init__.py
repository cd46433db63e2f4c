"""Under what a run was started: its key, host and start, the job of a scheduler, the container, their limits.

parse   texts of variables and files into facts (PURE)
read    reads them on this machine
"""
