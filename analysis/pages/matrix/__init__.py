"""GPU x model: the batch size of each model on each card, from the newest measurement, or else an estimate.

query        the settings and cards that the page shows
prices       the price of an hour of each card, with its source
highlights   PURE: the fastest and the cheapest measured card
context      the context of the page

Cells are written when a run ends (`runs/matrix_store.py`), so that the page reads a few hundred rows, however many runs
there are.
"""
