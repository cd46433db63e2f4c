"""What is made of many runs: lists, series, comparisons and totals, for pages, API, news and admin alike."""
