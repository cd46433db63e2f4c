"""A training whose ranks are emulated: its starts, one for each rank, and what they do and do not show."""
