"""The history of runs: which are shown, in which order, with which columns, and how they leave as a file.

query        a query string -> filters, order, columns, place; what is wrong with it
filters      one set of filters for page, export and API
columns      PURE: what may be shown and sorted on
order        in which order runs stand
cells        what one line says of a run
export       CSV and JSON, streamed
views        answers requests
"""
