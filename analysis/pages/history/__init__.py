"""The history of runs: which are shown, in which order, with which columns, and how they leave as a file.

query        a query string -> filters, order, columns, place; what is wrong with it, as text
filters      one set of filters for page, export and API
columns      PURE: what may be shown and sorted on
keyset       orders, and where a page goes on in them
pagination   one page of runs, that stays put while others arrive
cells        what one line says of a run
export       CSV and JSON, streamed
views        answers requests
"""
