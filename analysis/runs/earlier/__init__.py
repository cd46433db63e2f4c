"""What earlier runs already say: whether a size fits, a result to reuse, measured changes and lengths."""
