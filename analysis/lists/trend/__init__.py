"""One workload, its settings and a card over time: the runs as a series, and the steps in it."""
