"""The start page: the form, the devices, the queue, recent runs, totals."""
