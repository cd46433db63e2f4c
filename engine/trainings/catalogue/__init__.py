"""The measuring process, and its parent's handle on it."""
