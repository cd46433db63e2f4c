"""Traces training steps under fake tensors, as a card would execute them. Needs torch."""
