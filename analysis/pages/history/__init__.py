"""The page of all runs: its lines, exports, saved views and bulk actions."""
