"""PURE: which changes make a training faster: the race between them. Loads no torch.

field     what races, and the blocks or starts that were timed
rule      what to time next, and the verdict
numbers   whether a variant trains the same
row       a line of the table
text      what was found, as text
"""
