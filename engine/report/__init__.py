"""Sends a run to a portal while it goes on, and what could not be sent later. The file is always written first.

protocol   what is sent next, what an answer means, when to try again (PURE)
address    where a portal is, and with which token
script_output   removes what a script printed from what is sent (PURE)
http       one request, one answer
files      the stored events and result of a run
reporter   sends the events of a run from a separate thread
sync       sends the runs stored in a folder
"""
