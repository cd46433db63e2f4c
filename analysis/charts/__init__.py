"""Charts, pure: figures in, a description of the plot out, and of that its SVG. Only sizes that were run are drawn."""
