"""GPU x model: what each card takes of each model, from the newest run that proves it, or else from an estimate.

query        which settings and cards the page shows
prices       what an hour of each card costs, and who says so
highlights   PURE: which measured card is the fastest, which the cheapest
context      what the page is given

Cells are written when a run ends (`runs/matrix_store.py`), so that the page reads a few hundred rows, however many runs
there are.
"""
