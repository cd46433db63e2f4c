"""Rows of tokens and quotas."""
