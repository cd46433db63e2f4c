"""Measures a training on several hosts: the same `tune -- torchrun --nnodes 2 ...` is started on each of them.

One host decides: torchrun's node 0, or the one that has the address of its rendezvous. The search runs there alone. It
listens one port above torchrun's, the others connect, and each says that it was started with the same settings. For
each start it tells them the batch size, and all start their own torchrun. A participant sends what its ranks recorded
as soon as it is written. It lands in the folder of the coordinator's own ranks, so one start is watched and judged as
on one host: the worst rank decides, and a failure of any rank ends the ranks of all hosts.

- Each side says every few seconds that it is alive. A host that is gone, or silent for longer, ends all with a
  sentence: those that are left end their own ranks.
- A start's time limit is counted where it is decided. It holds for a rank that is silent, wherever it runs.
- Clocks differ: times of another host are moved by the difference between the two beginnings of a start.
- No host runs a command that came from another. A batch size and what is watched is all that a follower is told.

The connection between two hosts is a plain socket. A store of torch (`TCPStore`) says nothing of a host that is gone,
and would load torch into every host's watcher. As with torchrun's own rendezvous, whoever reaches the port is trusted.

- `rendezvous`: PURE, where the hosts meet, by the launcher's options; what cannot be measured on several is refused.
- `link`: the connection between two hosts.
- `merge`: PURE, what several hosts recorded and how their starts ended, as of one.
- `coordinator`, `participant`: the two sides.
"""
