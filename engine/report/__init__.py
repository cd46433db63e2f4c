"""Sends a run to a portal while it goes on, and what could not be sent later. The file is always written first.

protocol   what is sent next, what an answer means, when to try again (PURE)
address    where a portal is, and with which token (PURE)
http       one request, one answer
files      what a run keeps: its events and its result
reporter   sends the events of a run from a thread of its own
sync       sends what a folder holds
"""
