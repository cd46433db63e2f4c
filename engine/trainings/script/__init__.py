"""Measures a training as it is: each batch size is one start, watched by a hook and ended after a few steps.

- `spec`: what is requested: the command or function, how the batch size gets in, the limits of the search.
- `start`: the ways to start a training; collects what the hook noted, ends all of its processes, tells how it failed.
- `hook`: what runs inside the training and notes steps, batches and memory; it imports nothing of the engine.
- `judge`: PURE, from what was noted to a probe, or to the reason why the command cannot be tuned.
- `sizes`: which batch size to start next, so that few starts are needed.
- `speed`: which sizes are compared by speed; `seats` times them in turns, in starts that it holds.
- `run`: the search; `result`: what it found, and what the largest size consumed.
- `function`: tunes a function, in fresh processes, in forks of the program that holds it, or of a warm server.
- `devices`: which devices a training may use, and their locks; `start_times`: how long its starts take.
"""
