"""What a share link shows to people without an account: the result of one run, its charts, its badge."""
