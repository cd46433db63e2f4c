"""The page of what to do with a result: exact global batch, learning rate, code to paste."""
