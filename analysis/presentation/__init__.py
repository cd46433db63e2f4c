"""What the pages say of a run: pure functions from a stored result to sentences, figures and table rows.

    stored      the result's JSON as the engine's types
    words       names and phrases used everywhere: model, settings, place, reasons
    headline    the one sentence a result page leads with
    answer      three figures, certificate, setting to paste
    probes      rows of the probe tables
    states      chip, phase and closing words of each state
    history     one line of the list of runs
    devices     one device of the home page
    pages       what the run page is given, put together from these

Nothing here writes; `pages` alone asks the database. Rounding is left to `templatetags/units.py`.
"""
