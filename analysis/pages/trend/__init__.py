"""The page of one series of runs over time."""
