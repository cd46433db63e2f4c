"""The history of runs: which are shown, in which order, with which columns, and how they leave as a file.

tables      Tag, SavedView, RunWord: rows that exist for the history alone
columns     PURE: what may be shown and sorted on
ordering    orders, and where a page goes on in them
filters     one set of filters for page, export and API
asked       a query string -> filters, order, columns, place; what is wrong with it, in words
pages       one page of runs, that stays put while others arrive
cells       what one line says of a run
sparkline   PURE: a run's memory against its batch size, small
search      PURE: the words of a text
export      CSV and JSON, streamed
views       HTTP
"""
