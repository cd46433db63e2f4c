"""What to change so that a batch size fits: the page of a model and a GPU, and the parts of a run's page."""
