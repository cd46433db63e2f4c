"""The classic endpoints: a published contract that must not change."""
