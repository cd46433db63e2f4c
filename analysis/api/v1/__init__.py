"""Version 1 of the API: stored runs and their parts, in bytes and seconds."""
