"""Measures a training as it is: each batch size is one start, watched by a hook and ended after a few steps.

- `spec`: what is requested: the command or function, how the batch size gets in, the limits of the search.
- `hook`: what runs inside the training and notes steps, batches and memory; it imports nothing of the engine.
- `devices`: which devices a training may use, and their locks.
- `start`: the ways to start a training; collects what the hook noted, ends all of its processes.
- `function`: tunes a function, in fresh processes, in forks of the program that holds it, or of a warm server.
- `reading`, `evidence`: PURE, from what was noted to a probe, or to the reason why the command cannot be tuned.
- `next_size`: PURE, which batch size to start next, so that few starts are needed.
- `training`: PURE, what the largest size consumed, beside the figures of any result.
- `speed`: PURE, which sizes are compared by speed; `seats` times them in turns, in starts that it holds.
- `run`: the search, and the result.
"""
