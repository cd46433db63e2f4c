"""Races changes of settings for a catalogue model: what makes its training faster, measured.

spec    what is requested
answer  PURE: what follows from what was measured, in a run and of a document of another machine
result  what came out, in figures and in a sentence
run     the race, with a worker
"""
