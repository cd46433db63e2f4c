"""Traces that were made before: kept for an account, and shipped with the engine."""
