"""MemoryMark's engine: measures training steps, finds the batch-size boundary, and answers in figures.

Knows nothing of Django, and PyTorch in the worker process only. `public` lists what others may import.
"""

__version__ = "0.5.0"
"""The one place of it: CHANGELOG, `--version`, `/health`, the API and the pages are held to it by a test."""
