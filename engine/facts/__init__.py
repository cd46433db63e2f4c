"""What came out of a run, and the figures in it: their kinds, intervals, formulas and file."""
