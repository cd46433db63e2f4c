"""Which batch size is faster, and how sure that is."""
