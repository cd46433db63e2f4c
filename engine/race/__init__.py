"""Which changes make a training faster: the race between them, whatever trains. All is pure but `course`.

speed     which batch size is faster; the ratios and the evaluation serve changes as well
field     what races, and the blocks or starts that were timed
rule      what to time next, and the verdict
course    runs the rounds
numbers   whether a variant trains the same
row       a line of the table
answer    what follows from rounds
found     what every result says of what it found
text      what was found, as text
"""
