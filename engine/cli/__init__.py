"""The command line: what it reads, does and prints, one module for each command."""
