"""The classic endpoints: a published contract, kept exactly."""
