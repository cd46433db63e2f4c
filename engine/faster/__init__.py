"""Races changes of settings for a catalogue model: what makes its training faster, measured.

spec    what is requested
result  what came out, in figures and in a sentence
run     the race, with a worker
"""
