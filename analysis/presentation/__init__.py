"""What pages, panel and API say of a run: pure functions from stored rows to sentences, figures and table rows.

stored_result, stored_estimate      stored JSON as the engine's types
formatting                          figures as people read them; the only place that rounds
labels                              names and phrases used everywhere: model, settings, place, reasons
headline, result_summary            the one sentence of a result; three figures, certificate, setting to paste
memory_breakdown                    where the memory goes: by kind, and what each counter saw
estimate_summary, estimate_error    what an estimate says, and how far it was off
assumptions                         prices and hours that savings rest on
run_state                           chip, phase and closing words of each state
run_rows, probe_rows, device_cards  a line of the list of runs, of the table of probes; a device
charts                              PURE: coordinates of every chart

Nothing here writes or asks the database.
"""
