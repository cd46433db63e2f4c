"""The page that compares runs, and the choice of runs while fewer than two are named."""
