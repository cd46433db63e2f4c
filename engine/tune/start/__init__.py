"""The ways to start the same training: as a command, as a fork of this program, or as one of a warm server.

Each is a `launch.Begin`, whose starts `launch.start` watches, and `held` keeps for further blocks: `command` (below its
`guardian`), `fork`, and `warm_server_handle` with the process behind it, `warm_server`.
"""
