"""PURE: from what the hook noted of a start to its probe, or to the reason why the training cannot be tuned."""
