"""Runs beside each other, and one kind of run over time. Pure functions over stored rows; the views bring the rows.

    asked           what the address asks for, and what is wrong with it
    subjects        a stored run as the thing compared: settings, surroundings, figures, curves
    surroundings    what a run was made in (card, driver, versions, ...): recorded facts in words
    differences     rows of facts that differ, rows that are equal
    metrics         figures with the difference to the baseline, in words
    pareto          which points nothing else beats
    compare_plots   the charts of the compare page
    compare_page    what the compare page is given
    steps           where a series of figures jumps, and stays
    trend_series    one workload, settings and card over time
    trend_plots     the charts of the trend page
    trend_page      what the trend page is given

    tables          the notes that people leave on steps

Nothing here writes, and nothing but `tables` knows of a database.
"""
