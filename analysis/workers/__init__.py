"""The processes that execute runs, and what survives their death."""
