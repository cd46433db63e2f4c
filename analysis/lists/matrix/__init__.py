"""GPU x model: the figures of each model on each card, from the newest measurement, or else an estimate."""
