"""Comparison of runs. Pure functions of stored rows, which `load` reads.

query          parses the address
picker         the runs that are offered while fewer than two are named
compared_run   a stored run prepared for comparison: settings, environment, figures, curves
environment    the environment of a run (card, driver, versions, ...): recorded facts as text
differences    rows of facts that differ, rows that are equal
metrics        figures with the difference to the baseline, as text
pareto         the Pareto-optimal points
plots          the charts
context        the context of the page
"""
