"""The processes that execute runs: worker, supervisor, engine, and what survives their death."""
