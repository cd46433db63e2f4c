"""All changes of a run, and the rules that decide them. `services` lists every function that may change one."""
