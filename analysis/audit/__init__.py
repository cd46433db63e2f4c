"""Who changed what, when, from what to what, and in answer to which request."""
