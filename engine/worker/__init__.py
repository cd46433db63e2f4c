"""The process that measures, and the handle by which its parent holds it."""
