"""Who may do what here: the three roles, tokens of the API, quotas."""
