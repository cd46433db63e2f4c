"""What belongs to a person: tokens, subscriptions; and the audit log."""
