"""One workload, its settings and a card over time.

query            what the address asks for
load             the runs of a series, and the notes on its steps
series           a series with its steps and the versions that changed
step_detection   PURE: where a series of figures jumps, and stays
plots            the charts
context          what the page is given
"""
