"""HTTP handling that pages and the API share.

errors           error pages, and errors as JSON for programs
problem_details  errors as RFC 9457 problem details
strict_json      JSON bodies without repeated keys, NaN or NUL
query_string     the parameters of pages and API as strict forms
body_limit       bodies that are too large
client_ip        the client's address behind the trusted proxies
csp              the content security policy
htmx             requests for a part of a page
"""
