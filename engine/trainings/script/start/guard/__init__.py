"""Keeps what a start may not change: files as they were, and no process after its end.

These modules run in a process of their own that imports the standard library alone (`python -I guardian.py`), so they
import each other by their plain names.

- `guardian`: starts the command, and ends all that it started.
- `layers`: gives the start a view of the file system whose changes stay in a scratch folder (Linux namespaces).
- `syscalls`: where there are no namespaces, stops each system call that changes a file before it happens.
- `saved`: what `syscalls` saves of a file before the change, and puts back after the start.
"""
