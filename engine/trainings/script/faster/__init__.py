"""Which lines make somebody's own, unchanged script faster: each is set from outside by the hook, and timed in turns.

facts       PURE: what a start showed of what could be set
variants    PURE: what can be set, where it applies, and the lines that do the same in the script
spec        PURE: what is requested
command     PURE: how it is typed, for a script whose batch sizes were searched
answer      PURE: what follows from starts and rounds, in a run and of a document of another machine
run         starts them
"""
