"""The page of the training commands that can be started on this host."""
