"""What happens to a run, and the rules it follows. `services` lists everything that may change one."""
