"""PURE: what no machine exceeds, in the figures of any document."""

LEAST_STEP_SECONDS = 1e-7
"""Shortest possible optimizer step: any library call takes longer."""
BATCH_SIZE_MOST = 2**31 - 1
"""Larger than any size that is searched, and the largest that a database's column of sizes holds."""
SLACK_SECONDS = 0.05
"""Tolerance of the seconds of a run, which come from several clocks."""
OVERCOMMITTED = 2
"""Factor by which a refused step may exceed a host's memory: a program need not touch all memory it was promised."""
MOST_CORES = 8_192
"""The most cores that Linux runs on one machine."""
MOST_COLLECTING = 0.99  # share of its time in which Python collected garbage
LEAST_COMPUTING = 1e-6  # share of its time in which a training had a core
MOST_RANKS = 65_536
MOST_PROCESSES, MOST_OTHER_PROCESSES = 10_000, 1_000
"""The most processes of a run, and of others on its device."""
MOST_TOKENS = 2**40
"""The most tokens of a step of one rank."""
LINE_MOST, ONE_LINE = 200, "one line of 1 to {} printable characters"
DRIVER_COUNTS = 1 + 1 / 64
"""Factor by which a driver's count of a card's memory may exceed the card's properties."""
