"""Text for people: sizes and ratios, what a terminal may show, and secrets hidden."""
