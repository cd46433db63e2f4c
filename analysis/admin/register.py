"""All subjects of the panel. Imported once, after Django and its applications registered what they have."""

from analysis.admin import audit, devices, matrix, people, prices, queue, retention, runs, tokens

__all__ = ["audit", "devices", "matrix", "people", "prices", "queue", "retention", "runs", "tokens"]
