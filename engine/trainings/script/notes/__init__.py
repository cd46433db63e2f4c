"""What a start left: the notes of the hook, how its processes ended, and which files they changed."""
