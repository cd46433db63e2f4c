"""HTTP for programs: the classic endpoints (a published contract) and version 1."""
