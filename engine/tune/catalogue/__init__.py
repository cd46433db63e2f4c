"""Models of the catalogue on several ranks: a script of ours, which is started and watched as anybody's is."""
