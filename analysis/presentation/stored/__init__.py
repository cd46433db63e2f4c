"""Stored documents, read for pages: results, estimates, validations, and what cannot be read."""
