"""The audit log: who changed what and when, the values before and after, and the request.

record         writes an entry
context        the current actor and request
middleware     gives each request its id and its actor
auth_signals   logins, logouts, failed logins
model_signals  changes of rows that people edit
actions        the names of actions and of kinds of rows
logging        puts the request's id into log lines
"""
