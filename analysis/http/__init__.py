"""What every request meets, on pages and in the API alike.

errors           error pages, and errors as JSON for programs
problem_details  errors as RFC 9457 problem details
strict_json      JSON bodies without repeated keys, NaN or NUL
query_string     query strings with nothing that is not understood
body_limit       bodies that are too large
client_ip        the client's address behind the trusted proxies
csp              the content security policy
"""
