"""Texts, figures and table rows of runs for pages, admin panel and API: pure functions of stored rows."""
