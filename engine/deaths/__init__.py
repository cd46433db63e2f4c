"""Why a training died, read from what it left behind: a traceback, a log, a scheduler's output. Needs no torch."""
