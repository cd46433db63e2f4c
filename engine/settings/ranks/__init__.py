"""One rank of many: what stands in for the ranks that are not there."""
