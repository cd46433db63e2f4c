"""The audit log: who changed what and when, the values before and after, and the request."""
