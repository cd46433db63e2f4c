"""How the admin panel writes moments: as every other page does."""
