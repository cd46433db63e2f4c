"""GPU x model: what each card takes of each model, from the newest run that proves it, or else from an estimate.

    cells       PURE: a run's result as cells, one for each card it speaks of
    tables      the stored cells: one row per card, workload, settings and kind
    asked       which settings and cards the page is asked for
    prices      what an hour of each card costs, and who says so
    marks       PURE: which measured card is the fastest, which the cheapest
    page        what the page is given

Cells are written when a run ends, so that the page reads a few hundred rows, however many runs there are.
"""
