"""What the pages say of a run: pure functions from a stored result to sentences, figures and table rows.

    stored      the result's JSON as the engine's types
    words       names and phrases used everywhere: model, settings, place, reasons
    headline    the one sentence a result page leads with
    answer      three figures, certificate, setting to paste
    memory      where the memory goes: by kind, and what each counter saw
    curves      curves in both widths, with the estimate beside the measurement
    chart_files a chart as a file of its own
    probes      rows of the probe tables
    states      chip, phase and closing words of each state
    history     one line of the list of runs
    devices     one device of the home page
    live        a run that goes on, and what of it a poller has not seen
    pages       what the page of a run that is over is given, put together from these

Nothing here writes; `pages` and `live` alone ask the database. Rounding is left to `templatetags/units.py`.
"""
