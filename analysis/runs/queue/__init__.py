"""A run from its request to its end: placement, order, claim, lease, progress, retry, end."""
