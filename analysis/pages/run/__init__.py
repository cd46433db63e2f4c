"""The page of one run: waiting, live, ended, its result or its estimate."""
