"""What a run is asked, how its answer is worked out from its facts, and the documents that hold them."""
