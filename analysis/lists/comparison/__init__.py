"""Comparison of runs: each run's settings, environment and figures, and their differences."""
