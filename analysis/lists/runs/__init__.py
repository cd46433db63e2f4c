"""Lists of runs: filters, order and columns from a query string, and the same runs as a file."""
