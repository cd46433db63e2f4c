"""News for people and programs: what is news, for whom, and its delivery."""
