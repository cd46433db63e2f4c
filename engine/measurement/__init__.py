"""Everything that touches torch to measure a training step. Runs in the worker process only."""
