"""What can be trained: a model of the catalogue, or a script; and the search over its sizes."""
