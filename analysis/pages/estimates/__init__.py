"""How far estimates were off."""
