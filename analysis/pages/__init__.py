"""The pages, a package each: `views` answers requests, `query` reads addresses, `context` is for templates.

home       the form, the devices, the queue, recent runs, totals
run        one run: waiting, live, ended, its result or its estimate
history    all runs: filters, order, columns, paging, export, saved views
compare    runs beside each other
trend      one kind of run over time
matrix     GPU x model
estimates  how far estimates were off
fleet      hosts, devices, and what waits for them

context_processors   what every page knows besides its own context
"""
