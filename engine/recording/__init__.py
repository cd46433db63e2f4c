"""A training recorded while it runs as it is, once and to its end: what it used, whether it will last, why it died."""
