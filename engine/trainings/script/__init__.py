"""Measures a training as it is: each batch size is one start, watched by a hook and ended after a few steps.

- `spec`: what is requested: the command or function, how the batch size gets in (`config_text`), the limits of the
  search; `ranked_spec`, `ranked_command`: the same of a catalogue model on several ranks.
- `hook`: what runs inside the training and notes steps, batches and memory; it imports nothing of the engine.
- `notes`: reads the traces of a start: the hook's notes, the ends of its processes, changed files.
- `sizes`: which batch size to start next, so that few starts are needed.
- `start`: the ways to start a training, to hold it for its next turn, to end it, and to say how it failed.
- `judge`: PURE, from the notes to a probe, or to the reason why the command cannot be tuned.
- `speed`: which sizes are compared by speed; `seats` times them in turns, in starts that it holds.
- `run`: the search, with `whole_pass`; `result`: what it found, and what the largest size consumed.
- `faster`: the race of changes of a script.
- `function`: tunes a function, in fresh processes, in forks of the program that holds it, or of a warm server.
- `devices`: which devices a training may use, and their locks; `start_times`: how long its starts take.
"""
