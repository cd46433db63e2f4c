"""What is derived from a run's spec and result and stored in columns and rows of its own, for lists and the matrix."""
