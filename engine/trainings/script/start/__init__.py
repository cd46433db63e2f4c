"""The ways to start the same training, each a `launch.Begin`: a command, a fork of this program, a warm server's."""
