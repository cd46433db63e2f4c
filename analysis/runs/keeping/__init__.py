"""How long runs are kept: the rules, and what they do to runs."""
