"""Version 1 of the API: stored runs and all that belongs to them, in bytes and seconds.

strict_input        what a request holds: strict JSON bodies, only known parameters
paging              lists in pages that stay put
throttles           how often a person may do what costs something, counted across processes
idempotency         the same request sent twice stores one run
etags               ETag, If-None-Match, If-Match
serializer_bases    what query and body serializers share
serializers         rows -> JSON
runs                list, create, detail, change, delete
run_actions         cancel, retry, clone, restore
run_parts           measurements, attempts, events, points, result, certificate
run_document        a run as a file: JSON, CSV
evidence            stored probes and estimates -> curves and certificates
openapi_parameters  what the OpenAPI schema says of runs beside their views
root                where everything is
"""
