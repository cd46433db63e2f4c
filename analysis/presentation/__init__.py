"""Texts, figures and table rows of runs for pages, admin panel and API: pure functions of stored rows.

stored_result, stored_estimate      stored JSON as the engine's types
formatting                          numbers as text; the only place that rounds
labels                              names and phrases used everywhere: model, settings, place, reasons
headline, result_summary            the headline of a result; three figures, certificate, setting to paste
memory_breakdown                    use of memory: by kind, and by each counter
estimate_summary, estimate_error    the texts of an estimate, and its error
assumptions                         prices and hours that savings depend on
run_state                           label, phase and ending of each state
run_rows, probe_rows, device_cards  rows of the list of runs and of the table of probes; a device
charts                              PURE: coordinates of every chart

Nothing here writes to the database.
"""
