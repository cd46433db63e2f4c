"""Command lines of `manage.py`."""
