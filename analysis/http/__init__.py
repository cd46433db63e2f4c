"""HTTP handling that pages and the API share."""
