"""Date formats of the admin panel: those of the other pages."""
