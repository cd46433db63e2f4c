"""The pages, one package each: `views` answers requests, `query` reads addresses, `context` is for templates.

home       the form, the devices, the queue, recent runs, totals
run        one run: waiting, live, ended, its result or its estimate
history    all runs: filters, order, columns, paging, export, saved views
compare    comparison of runs
trend      one series of runs over time
matrix     GPU x model
estimates  errors of estimates
fleet      hosts, devices and their queues
help       the words, and the documents of docs/

context_processors   the context that all pages share
menu                 the main menu
"""
