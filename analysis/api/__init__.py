"""The HTTP API: the classic endpoints (a published contract) and version 1."""
