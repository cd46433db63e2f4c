"""All changes of a run, and the rules that decide them. `services` lists every function that may change one.

create, claim, progress, finish      a run from submission to its end; lease: what a claim gives its owner
annotate, saved_views, acknowledge   notes on runs, saved lists, notes on steps of a trend
purge, retention                     what is deleted, and when
estimates, device_admin              creating estimates; enabling and draining devices
matrix_cells, matrix_store           PURE: a result as cells of the matrix; their rows
scheduling, retry_policy, series     PURE: which run is next; whether a run is tried again; which series it belongs to
placement, queue_forecast            where a run may start, and when
remaining_time, reuse, resume        how long it takes, whether it was measured before, what an earlier attempt measured
result_columns, search_terms         PURE: columns taken from a result and from a note, to filter and sort on
run_text                             the search terms of a run in the database's text index
gpu_catalog                          the cards on offer and their prices
"""
