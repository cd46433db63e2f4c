"""People and their rights: login and lock-out, required roles, API tokens, quotas, rate limits."""
