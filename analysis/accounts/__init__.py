"""People and what they may do: login and lock-out, roles at the door, API tokens, quotas, rate limits."""
