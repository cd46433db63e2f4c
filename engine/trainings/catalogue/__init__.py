"""The process that measures, and the handle through which its parent controls it."""
