"""The page GPU x model.

Cells are written when a run ends, so that the page reads a few hundred rows, however many runs there are.
"""
