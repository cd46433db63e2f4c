"""Version 1 of the API: stored runs and all that belongs to them, in bytes and seconds.

problems     errors as RFC 9457 problem details
reading      what a request holds: strict JSON bodies, only known parameters
paging       lists in pages that stay put
throttles    how often a person may do what costs something, counted across processes
idempotency  the same request sent twice stores one run
caching      ETag, If-None-Match, If-Match
serializers  rows -> JSON
runs         list, create, detail, change, delete
run_actions  cancel, retry, clone, restore
run_parts    measurements, attempts, events, points, result, certificate
evidence     stored probes and estimates -> curves and certificates
documented   what the OpenAPI schema says of runs beside their views
root         where everything is
"""
