"""PURE: which batch size to try next, and what the tried ones prove."""
