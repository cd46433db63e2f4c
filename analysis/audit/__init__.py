"""Who changed what, when, from what to what, and in answer to which request.

record         writes an entry
context        who acts now, in which request
middleware     gives each request its id and its actor
auth_signals   logins, logouts, failed logins
model_signals  changes of rows that people edit
actions        the names of actions and of kinds of rows
logging        puts the request's id into log lines
"""
