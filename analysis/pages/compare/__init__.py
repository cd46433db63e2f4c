"""Runs beside each other. Pure functions over stored rows, which `load` brings.

query          what the address asks for
compared_run   a stored run as the thing compared: settings, environment, figures, curves
environment    what a run was made in (card, driver, versions, ...): recorded facts as text
differences    rows of facts that differ, rows that are equal
metrics        figures with the difference to the baseline, as text
pareto         which points nothing else beats
plots          the charts
context        what the page is given
"""
