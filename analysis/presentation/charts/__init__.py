"""Charts, pure: figures in, a description of the plot out, and of that its SVG. No request, no database.

The plots of the compare and the trend page are described there. Only batch sizes that were run are drawn; an
out-of-memory is a point too, on the limit.
"""
