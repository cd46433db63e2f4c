"""All subjects of the admin panel. Imported once, after Django's applications have registered theirs."""

from analysis.admin import audit, devices, matrix, people, prices, queue, retention, runs, tokens

__all__ = ["audit", "devices", "matrix", "people", "prices", "queue", "retention", "runs", "tokens"]
